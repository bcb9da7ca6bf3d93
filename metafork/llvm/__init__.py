"""Kernels as LLVM IR, and their PTX through LLVM's NVPTX back end."""
