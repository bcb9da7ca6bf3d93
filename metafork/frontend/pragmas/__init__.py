"""The pragmas of MetaFork."""
