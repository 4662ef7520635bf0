"""Event detectors, their documents, and the archive that keeps them."""
