"""Following streams by sockets and by the archive."""
