"""Strategies on the code that LLVM makes of a kernel: pipelines that take fewer registers, choices, warp shuffles."""
