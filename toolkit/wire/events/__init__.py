"""Event documents, and the cursor pager that fetches them."""
