"""How the local service misbehaves when it is told to: in every way that the interface leaves open.

``settings`` holds the switches; the other modules carry them out. Without a switch none of them
stands in the way of an answer.
"""
