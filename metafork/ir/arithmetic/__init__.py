"""C's arithmetic: types, exact values of integer expressions, constants, and the functions of math.h."""
