"""What a program is: its grammar, types and kernel form, with spans, diagnostics, evaluation and rewriting."""
