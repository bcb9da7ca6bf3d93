"""The decision tree and what is read from and written of it."""
