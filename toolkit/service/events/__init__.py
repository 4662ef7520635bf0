"""What counts as an event: detectors, their documents, and the archive that keeps them."""
