"""From a program to the kernel form that is printed, compiled and run."""
