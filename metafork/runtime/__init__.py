"""What generated code is compiled with: the C headers, and the machine descriptions that equal them."""
