"""The parts of `rail doctor` that need no connection."""
