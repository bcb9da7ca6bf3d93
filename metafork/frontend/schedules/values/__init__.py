"""Values that the host has or is promised to have: constants, sizes, tables, and what initialisers place."""
