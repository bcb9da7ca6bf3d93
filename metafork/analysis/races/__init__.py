"""Races of the input: refuted by two iterations, proved away, or unknown."""
