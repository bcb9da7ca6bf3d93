"""Sketches as text: lexer, parser, elaboration."""
