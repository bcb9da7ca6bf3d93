"""PTX as text: lexer, parser, syntax, printer, control flow."""
