"""Clients of the service: thin drivers over `toolkit.wire`."""

from toolkit.client.http import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
