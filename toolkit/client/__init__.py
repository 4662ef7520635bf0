"""Thin drivers over `toolkit.wire`: what asks the service."""

from toolkit.client.http import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
