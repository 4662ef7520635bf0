"""Sources of rows: recorded, simulated or live markets, the clock, and series of their rows."""
