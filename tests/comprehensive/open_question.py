"""A constraint about which no solver answers within any time."""

from metafork.algebra.polynomial import Constraint
from tests.comprehensive.case_discussion.made_up import symbol

X, Y, Z = symbol("x"), symbol("y"), symbol("z")
# Is a sum of two cubes a cube?  No, but no solver knows within any time.
FERMAT = Constraint((X + 1) ** 3 + (Y + 1) ** 3, "==", (Z + 1) ** 3)
