"""The wire profile of a service: names, units, routes and shapes, read from layers."""
