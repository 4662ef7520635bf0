"""Pagers as generators: which page is asked for next, and when a history is complete."""
