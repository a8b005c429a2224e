"""Goodput against offered load: Forecastle's applications beside two peers, on the same model."""
