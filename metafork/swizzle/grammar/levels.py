"""The options of a transformation hole at a restriction level: the template, its broadcasts, and level 4's families.

Everything of a level is there: families that are too many to list stay in factors, and an axis whose other families
could not be listed is refused.
"""

from __future__ import annotations

import numpy as np

from metafork.swizzle.grammar.compositions import fan_fan_rotations, linearisations, units
from metafork.swizzle.grammar.transformation import SECONDARY, broadcasts, instances
from metafork.swizzle.model.options import MOST_ENTRIES, Composition, OptionSet, Tables, joined_sets

LEVELS = (0, 1, 2, 3, 4)
# A composition of up to this many entries is listed with the other families, which removes what is equal.
_MOST_COMPOSED = 4_000_000


def transformations(
    length: int, secondary: int, level: int, *, outside: bool = False, spread: bool = False
) -> OptionSet:
    """Return the distinct options of a transformation hole, the identity first.

    ``outside`` is Swizzleflow's release, which has no broadcasts.  ``spread`` puts ``X(i, k) = k`` first, the identity
    of an array that is spread over ``i`` (``k`` must be below ``length``).  Raises ``ValueError`` for a level other
    than 0 to 4, and for axes whose options are too many to list.
    """
    if level not in LEVELS:
        raise ValueError(f"restriction levels are 0 to 4, not {level}")
    entries = (length + 1) ** 2 * (secondary.bit_length() if level else 1) * length * secondary
    if level == 4:
        entries = max(entries, 2 * length * secondary * length.bit_length() * length * secondary)
    if entries > MOST_ENTRIES:
        raise ValueError(
            f"a transformation of {length} by {secondary} elements has too many options to list: about {entries} "
            f"entries of tables, and at most {MOST_ENTRIES} are kept"
        )
    families = [_spread(length, secondary)] if spread else []
    families.append(instances(length, secondary, level, outside=outside))
    if not outside and level > 0:
        families.append(broadcasts(length, secondary, level))
    if level < 4:
        return joined_sets(families)
    families += [linearisations(length, secondary), units(length, secondary)]
    composed = fan_fan_rotations(length, secondary)
    if len(composed) * length * secondary <= _MOST_COMPOSED:
        return joined_sets([*families, _listed(composed)])
    joined = joined_sets(families)
    return OptionSet(joined.tables, joined.spelled, composed)


def _spread(length: int, secondary: int) -> OptionSet:
    return OptionSet(np.tile(np.arange(secondary, dtype=np.int16), length)[None], lambda _: SECONDARY)


def _listed(composed: Composition) -> OptionSet:
    tables: Tables = composed.tables[:, composed.turns].reshape(len(composed), -1)
    return OptionSet(tables, lambda option: composed.expression(*divmod(option, composed.turns.shape[0])))
