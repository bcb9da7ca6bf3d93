"""MetaFork: comprehensive optimization of parametric CUDA kernels."""
