"""Thin drivers over `toolkit.wire`: what asks the service."""

from toolkit.client.http import Client

__all__ = ["Client"]
