"""Webhooks of the local service: who may sign in, where deliveries go, and bringing them there.

Everything here is in memory: endpoints, sessions and what is still to be delivered end with the
service.
"""
