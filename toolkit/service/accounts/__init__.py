"""Owners, plans, quotas, sessions, and refusals."""
