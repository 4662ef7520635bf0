"""The page of funding."""
