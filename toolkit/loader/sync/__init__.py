"""Loading a window: what is missing, the tasks that fetch it, and the commit."""
