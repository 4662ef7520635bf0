"""Machine rail toolkit."""
