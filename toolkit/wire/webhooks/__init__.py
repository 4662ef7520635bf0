"""Webhook deliveries: their documents and their signatures."""
