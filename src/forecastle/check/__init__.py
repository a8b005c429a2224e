"""Playing a platform: checks of what a server must do for it, over HTTP and on the server's process."""
