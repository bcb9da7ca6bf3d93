"""Nests as people write them: brought to grid and threads before anything is built from them."""
