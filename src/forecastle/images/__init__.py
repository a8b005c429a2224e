"""Writing what an image is built from."""
