"""How a request comes in: REST, WebSocket and MCP, access and capacity, and webhooks going out."""
