"""Dataflow of leaves compared with that of the input."""
