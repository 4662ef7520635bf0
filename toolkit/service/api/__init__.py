"""What is asked and answered, whatever the transport: tools, queries, rows, documents, the feed."""
