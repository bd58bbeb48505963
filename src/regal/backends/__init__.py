"""Apply a plan to the user's model, and prove in the real runtime that it still works."""
