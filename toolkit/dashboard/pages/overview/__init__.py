"""The page that opens first."""
