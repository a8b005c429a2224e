"""What a model is on disk: finding it, fetching it, unpacking it, recognising it, reading its signature and labels."""
