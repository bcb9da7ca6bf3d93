"""Parameters of a test, all but a sample of them marked as slow."""

from collections.abc import Collection, Iterable, Mapping

import pytest


def sampled(cases: Iterable[object] | Mapping[str, object], quick: int | Collection[str]) -> list:
    """Return the parameters; those that stay quick are the first so many, or those with these names.

    Names are the keys of a mapping; its values are the parameters, a tuple being several.
    """
    named = cases.items() if isinstance(cases, Mapping) else ((str(case), case) for case in cases)
    found = []
    for at, (name, case) in enumerate(named):
        stays = at < quick if isinstance(quick, int) else name in quick
        values = case if isinstance(case, tuple) else (case,)
        found.append(pytest.param(*values, id=name, marks=() if stays else pytest.mark.slow))
    assert isinstance(quick, int) or set(quick) <= {one.id for one in found}
    return found
