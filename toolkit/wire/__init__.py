"""The wire without a socket: profiles, requests as values, pagers as generators, rows from bytes.

Nothing here opens a connection or reads a clock. A *flow* is a generator that yields `Send` and
`Wait` steps and its results; `toolkit.client` carries the steps out.
"""
