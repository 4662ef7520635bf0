"""Who may ask for what: owners, plans, quotas, sessions, and the refusals."""
