"""The wire profile: names, units, routes and shapes of a service, read from its layers."""
