"""From tokens to the syntax tree."""
