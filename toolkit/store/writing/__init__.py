"""Writing into a store: loads, batches, pages, deliveries and alerts."""
