"""Generated files made into a library, and its functions called from Python."""
