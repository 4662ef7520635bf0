"""Bytes of an answer to typed rows."""
