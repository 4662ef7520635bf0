"""The page of one trajectory."""
