"""A fake of exchanges on loopback: what their markets do, and how each of them tells it."""
