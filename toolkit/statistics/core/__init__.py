"""Contracts that every statistic shares: questions, observations, windows, one pass over rows."""
