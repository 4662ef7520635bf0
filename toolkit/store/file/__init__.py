"""The DuckDB file: its engine, its schema, who may open it, and whether it is whole."""
