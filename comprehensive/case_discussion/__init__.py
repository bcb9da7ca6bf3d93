"""Algorithms 1 and 2 of the paper: the case discussion on quintuples."""
