"""What several strategies need for their variants to pay."""

from evaluators.threads_per_block import COUNTER as THREADS_PER_BLOCK
from metafork.ir.program import Version
from strategies.strategy import Need

FULL_WARP: Need[Version] = Need(THREADS_PER_BLOCK, "warp_size")
"""Fewer threads than a warp leave lanes of it idle, whatever each of the others does."""
