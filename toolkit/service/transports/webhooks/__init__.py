"""Webhooks of the local service: signing in, endpoints and deliveries.

Everything here is in memory: endpoints, sessions and deliveries still to be made end with the
service.
"""
