"""The control flow of thread code, and what is available along it."""
