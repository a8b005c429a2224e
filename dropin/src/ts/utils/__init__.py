"""What TorchServe has for handlers besides."""
