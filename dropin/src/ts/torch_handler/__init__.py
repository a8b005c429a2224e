"""TorchServe's handlers."""
