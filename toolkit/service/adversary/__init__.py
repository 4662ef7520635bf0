"""How the local service misbehaves on request: in every way that the interface leaves open.

``settings`` has the switches. The other modules implement them, in wrappers around the faithful
service's tools, feed, archive, courier and application, which do not import them.
"""
