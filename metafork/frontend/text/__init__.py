"""From characters to a syntax tree: tokens, macros and ``#if``, definitions, statements, expressions of C."""
