"""TorchServe's import names for handlers, over Forecastle."""
