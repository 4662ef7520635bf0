"""Webhooks of the local service: signing in, endpoints and deliveries, all in memory."""
