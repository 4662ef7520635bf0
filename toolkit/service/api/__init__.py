"""Questions and answers of every transport: tools, queries, rows, documents, the feed."""
