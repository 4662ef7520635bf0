"""The webhook receiver."""
