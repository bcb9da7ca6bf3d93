"""What users bring along from C on a host, CUDA, OpenMP, C++ and Python, and what this language has for it."""
