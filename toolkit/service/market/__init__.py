"""Where the rows come from: recorded or simulated markets, the clock, and series of their rows."""
