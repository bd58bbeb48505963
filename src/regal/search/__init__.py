"""Search for plans: orders, placements, and their proofs."""
