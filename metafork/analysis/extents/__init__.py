"""How many elements a program touches of arrays that do not say it."""
