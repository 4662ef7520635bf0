"""Show values and tables: one way for terminals, files, pages, reports and answers."""
