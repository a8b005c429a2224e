"""Environments: the Python environments that replicas run in, made of requirements by uv and kept for the next time."""
