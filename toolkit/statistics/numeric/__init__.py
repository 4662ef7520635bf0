"""Numerical methods: distributions, long-run errors, lags and tests."""
