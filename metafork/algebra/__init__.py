"""Polynomials over symbols, derived symbols, and three-valued proofs about them."""
