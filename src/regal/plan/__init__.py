"""Plans: types, checks, files."""
