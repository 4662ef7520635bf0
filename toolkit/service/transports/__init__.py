"""Transports: REST, WebSocket and MCP, access and capacity, and webhooks going out."""
