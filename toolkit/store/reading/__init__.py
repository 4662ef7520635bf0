"""Reading of a store: rows, moments, snapshots, and the SQL of users."""
