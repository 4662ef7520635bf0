"""Stored event logs: selections, and answers of analyses."""
