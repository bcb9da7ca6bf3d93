"""Programs and kernels as text: C expressions, MetaFork, CUDA, OpenCL C."""
