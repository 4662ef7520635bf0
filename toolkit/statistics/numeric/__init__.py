"""Numerical methods without a market: distributions, long-run errors, lags and tests."""
