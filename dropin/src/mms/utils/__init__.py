"""The place of MMS's functions for services."""
