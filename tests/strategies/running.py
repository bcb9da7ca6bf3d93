"""Which variant of a tree runs at a point."""

from metafork.comprehensive.tree.document import document_of
from metafork.comprehensive.tree.schedule_tree import ScheduleTree, Variant
from metafork.comprehensive.tree.selection import select
from metafork.runtime.machine import PRESETS


def running(tree: ScheduleTree, **values: int) -> Variant:
    """Return the variant that runs at these parameters, on an sm_80 that has these limits."""
    document = document_of(tree)
    fields = PRESETS["sm_80"].fields()
    found = select(document, {symbol: fields[field] for symbol, field in document.fields.items()} | values)
    assert found.variant is not None
    return tree.leaves[found.leaf - 1].variants[found.variant.number - 1]
