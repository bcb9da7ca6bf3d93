"""Bank conflicts of shared memory: the accesses of a block, simulated."""
