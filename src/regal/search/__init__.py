"""Search for good plans."""
