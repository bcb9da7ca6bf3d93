"""Warp shuffles in place of loads: detection, synthesis, report."""
