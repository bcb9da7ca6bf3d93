"""Symbolic execution of PTX: terms, states, paths, memory traces."""
