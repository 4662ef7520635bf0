"""The page of all spreads."""
