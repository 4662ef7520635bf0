"""The wire without a socket: profiles, requests as values, pagers as generators, rows from bytes.

Nothing here opens a connection or reads a clock. A *flow* yields `Send` and `Wait` steps, which
`toolkit.client` carries out, and its results.
"""
