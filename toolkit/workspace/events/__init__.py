"""Event logs that a store holds: which rows are chosen, and what their statistics answer."""
