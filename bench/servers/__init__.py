"""Servers that do nothing but answer: what Python's HTTP can do at most here."""
