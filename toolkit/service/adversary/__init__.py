"""How the local service misbehaves on request: in every way that the interface leaves open.

``settings`` holds the switches. The other modules carry them out, in wrappers around the faithful
service's tools, feed, archive, courier and application, which know nothing of them.
"""
