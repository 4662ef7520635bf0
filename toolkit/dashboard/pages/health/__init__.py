"""The page about the store's own data."""
