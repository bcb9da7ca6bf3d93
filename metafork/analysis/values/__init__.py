"""Symbolic values of C integer expressions: indices, bounds, conditions, opaque symbols (DESIGN section 4)."""
