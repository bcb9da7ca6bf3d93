"""What is said about an input: its text and places in it, diagnostics, and the catalogue of their codes."""
