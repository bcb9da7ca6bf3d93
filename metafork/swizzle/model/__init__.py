"""The problem of a sketch: indices, terms, options, specification."""
