"""Forecastle: a model server."""
