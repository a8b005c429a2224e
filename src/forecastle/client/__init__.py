"""What asks a server."""
