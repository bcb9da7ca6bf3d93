"""The host file: drop-in functions, what they announce of host code, and sums in a stated order."""
