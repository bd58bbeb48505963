"""Plan how a neural-network graph executes: less memory, less time, checked and applied."""
