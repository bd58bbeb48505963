"""Learned policies as the product runs them: inputs, exported networks, what they propose."""
