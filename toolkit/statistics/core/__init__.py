"""Contracts that all statistics share: questions, observations, windows, one pass over rows."""
