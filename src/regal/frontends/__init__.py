"""Read model files into graphs."""
