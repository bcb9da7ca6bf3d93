"""The case discussion: constraint systems, quintuples, Algorithms 1 and 2, the tree and what is written of it."""
