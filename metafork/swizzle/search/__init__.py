"""The search for a completion that meets the specification."""
