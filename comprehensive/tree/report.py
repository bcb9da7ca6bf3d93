"""``report.md``: what was measured, tried and refused for every schedule of a file, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument
from comprehensive.tree.remarks import as_list
from comprehensive.tree.schedule_tree import (
    ESTIMATED,
    ORDER,
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Statistics,
    Tree,
    common_system,
    values_text,
)
from metafork.algebra.polynomial import Constraint
from metafork.ir.translation_unit import Promise, StatedOrder


def markdown(
    document: TreeDocument,
    trees: Sequence[ScheduleTree],
    promises: Sequence[Sequence[Promise]] = (),
    orders: Sequence[StatedOrder | None] = (),
    compiled: Mapping[str, str] | None = None,
) -> str:
    """Return the report of a file.

    ``promises`` and ``orders`` are those of each schedule, ``compiled`` what is to be said of the code of kernels, by
    their names.
    """
    lines = [f"# {document.source}", ""]
    if not document.schedules:
        lines += ["There is no `meta_schedule` in this file.", ""]
    for number, (schedule, tree) in enumerate(zip(document.schedules, trees, strict=True)):
        lines += _in_short(schedule, tree)
        lines += _promised(promises[number] if promises else ())
        lines += _ordered(orders[number] if orders else None)
    for schedule, tree in zip(document.schedules, trees, strict=True):
        lines += _schedule(schedule, tree, compiled or {})
    return "\n".join(lines)


def _in_short(schedule: ScheduleDocument, tree: ScheduleTree) -> list[str]:
    """Say of a schedule what is cached, kept in registers and joined to the grid, and what is not, and why."""
    remarks = as_list(tree.remarks) or ["- there is nothing to say of its arrays and loops"]
    return [f"**{schedule.name}**, the schedule at line {schedule.line}:", "", *remarks, ""]


def _promised(promises: Sequence[Promise]) -> list[str]:
    """List what was taken on trust."""
    if not promises:
        return []
    lines = []
    for one in promises:
        given = f"(promised in line {one.pragma.line})"
        lines.append(f"- line {one.span.line}: accesses to `{one.array}` meet no other iteration's {given}")
    return ["Taken on trust, by `#pragma metafork disjoint`:", "", *lines, ""]


def _ordered(order: StatedOrder | None) -> list[str]:
    """State the order in which a schedule adds up floating-point numbers."""
    if order is None:
        return []
    lines = [
        "Floating-point numbers are added up in a stated order (`--reassociate`):",
        "",
        "- a thread adds up its terms in the order of the text, from 0 (of products from 1, of `min` and `max` from an "
        "infinity);",
        "- the threads of a block, numbered with the innermost loop the fastest, are folded by halves: for "
        "`h` from the greatest power of two below their number down to 1, `s[j] += s[j + h]` for all `j < h`;",
    ]
    if order.parts:
        lines += [
            "- then one block of 256 threads adds up the blocks' parts, numbered alike: thread `j` adds up every 256th "
            "of the blocks' parts from part `j` on, and their sums are folded by halves again;",
        ]
    end = "- the outcome is added to what the variable held; of equals, `min` and `max` keep the older."
    return [*lines, end, ""]


def _schedule(schedule: ScheduleDocument, tree: ScheduleTree, compiled: Mapping[str, str]) -> list[str]:
    count = len(schedule.leaves)
    lines = [
        f"## {schedule.name}: the schedule at line {schedule.line}, function `{schedule.function}`",
        "",
        f"{count} {'leaf' if count == 1 else 'leaves'}; "
        f"counters {_code(c.name for c in schedule.counters)}; strategies {_code(schedule.strategies)}.",
        "",
        f"Parameters: data {_code(schedule.data)}, program {_code(schedule.program)}, "
        f"machine {_code(schedule.machine)}.",
    ]
    if schedule.fixed:
        lines.append(f"Fixed by the user: {_code(f'{name} = {value}' for name, value in schedule.fixed.items())}.")
    if schedule.derived:
        texts = (f"{d.name} = {d.definition(schedule.order)}" for d in schedule.derived)
        lines.append(f"Derived: {_code(texts)}.")
    if not schedule.complete:
        lines += ["", "**The time limit ended the discussion early; the regions it left are listed below.**"]
    lines += ["", "### When it applies", ""]
    lines += [f"- `{schedule.text(constraint)}`" for constraint in schedule.start] or ["- always"]
    lines += ["", "Outside these conditions the serial code runs.", "", "### Leaves, in order of preference", ""]
    order = [sentence for subject, sentence in tree.notes if subject == ORDER]
    lines += [*(f"- {sentence}" for sentence in order), *([""] if order else [])]
    for leaf in schedule.leaves:
        lines += _leaf(schedule, leaf, compiled)
    if not schedule.leaves:
        lines += ["None: no parameter values satisfy the conditions above and the machine's limits.", ""]
    estimated = [f"- {sentence}" for subject, sentence in tree.notes if subject == ESTIMATED]
    lines += ["### Left out by an estimate", "", *estimated, ""] if estimated else []
    lines += _regions(schedule)
    lines += ["### The tree", "", "```text", *_tree(schedule, schedule.root), "```", ""]
    lines += _notes([note for note in tree.notes if note[0] not in (ORDER, ESTIMATED)])
    return lines + _statistics(tree.statistics)


def _leaf(schedule: ScheduleDocument, leaf: LeafDocument, compiled: Mapping[str, str]) -> list[str]:
    signs = "".join(f"({sign})" for sign in leaf.trace)
    lines = [
        f"**Leaf {leaf.id}**, `{leaf.kernel}`: {leaf.title}",
        "",
        f"- strategies {_code(leaf.strategies)}; trace {signs or '-'}",
    ]
    units = {counter.name: counter.unit for counter in schedule.counters}
    lines += [f"- when {_conditions(schedule, system) or 'always'}" for system in leaf.systems]
    for name, value in leaf.counters.items():
        unit = units.get(name)
        sampled = f" (sampled: {value.sampled})" if value.sampled else ""
        lines.append(f"- {name}: `{schedule.value_text(value)}`{f' {unit}' if unit else ''}{sampled}")
    lines += [f"- {compiled[leaf.kernel]}"] if leaf.kernel in compiled else []
    common = common_system(leaf.instances)
    for one in leaf.instances:
        counted = "".join(f"; {name} `{schedule.value_text(value)}`" for name, value in one.counters.items())
        lines.append(f"- instance {one.number}, `{one.kernel}`: when `{values_text(one.values)}`{counted}")
        lines += [f"  - needs {_conditions(schedule, one.system)}"] if common is None and one.system else []
        lines += [f"  - {compiled[one.kernel]}"] if one.kernel in compiled else []
    lines += [f"- instances need {_conditions(schedule, common)}"] if common else []
    if leaf.witness is not None:
        lines.append(f"- for example {_code(f'{name} = {value}' for name, value in leaf.witness.items())}")
    else:
        lines.append("- no integer example was found; the conditions were not shown to be contradictory either")
    return [*lines, ""]


def _conditions(schedule: ScheduleDocument, system: Iterable[Constraint]) -> str:
    return " and ".join(f"`{schedule.text(constraint)}`" for constraint in system)


def _regions(schedule: ScheduleDocument) -> list[str]:
    found: list[NoLeaf] = []

    def visit(tree: Tree) -> None:
        if isinstance(tree, Node):
            visit(tree.accept)
            visit(tree.refuse)
        elif isinstance(tree, NoLeaf):
            found.append(tree)

    visit(schedule.root)
    if not found:
        return []
    lines = ["### Where no leaf applies", "", "There the dispatcher runs the serial code.", ""]
    for region in found:
        conditions = _conditions(schedule, region.system) or "everywhere"
        lines.append(f"- {conditions}: {region.reason}")
    return [*lines, ""]


def _tree(schedule: ScheduleDocument, tree: Tree, indent: str = "") -> list[str]:
    match tree:
        case LeafReference(leaf=leaf):
            return [f"{indent}leaf {leaf}"]
        case Inconsistent():
            return [f"{indent}no leaf (inconsistent)"]
        case NoLeaf(reason=reason):
            return [f"{indent}no leaf ({reason})"]
        case Node():
            strategy = f" by {tree.strategy}" if tree.strategy is not None else ""
            return [
                f"{indent}{tree.counter}: {schedule.text(tree.condition)}{' (sampled)' if tree.value.sampled else ''}",
                *_tree(schedule, tree.accept, indent + "    "),
                f"{indent}else{strategy}",
                *_tree(schedule, tree.refuse, indent + "    "),
            ]


def _notes(notes: Sequence[tuple[str, str]]) -> list[str]:
    """List what counters and strategies had to say, by subject."""
    if not notes:
        return []
    lines = ["### What was tried", ""]
    for subject in dict.fromkeys(subject for subject, _ in notes):
        lines += [f"- **{subject}**"]
        lines += [f"  - {sentence}" for name, sentence in notes if name == subject]
    return [*lines, ""]


def _statistics(statistics: Statistics) -> list[str]:
    return [
        "### Work",
        "",
        f"{statistics.nodes} inner nodes, {statistics.paths} paths to {statistics.leaves} leaves; "
        f"{statistics.evaluations} counter evaluations, {statistics.applications} strategy applications, "
        f"{statistics.solver_calls} questions to Z3.",
        "",
    ]


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts) or "none"
