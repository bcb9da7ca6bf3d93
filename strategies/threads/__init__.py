"""Strategies that change what a thread of a block does: how many results, which neighbours, in which registers."""
