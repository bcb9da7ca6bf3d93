"""Copies of windows between global and shared memory, as the threads of a block make them together."""
