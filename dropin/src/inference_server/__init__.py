"""The names of the `inference-server` package, over Forecastle."""
