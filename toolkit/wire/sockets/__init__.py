"""Streams and actions of the data socket, without the socket."""
