"""Modules of the zoo, by what they are for."""
