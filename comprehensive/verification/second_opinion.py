"""A second opinion on the polynomials: SymPy reads every condition of a tree as it is printed, and compares.

The arithmetic of the case discussion is the project's own (``metafork.algebra.polynomial``).  What users read, what
the JSON carries and what the generated C computes come from the same objects; this check parses the printed text with
another system and asks whether both mean the same polynomial, for every condition, system and counter value.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.properties import Check
from metafork.comprehensive.tree.schedule_tree import Node, ScheduleTree, Tree

NAME = "SymPy reads the printed conditions as the polynomials of the tree"


def sympy_check(tree: ScheduleTree) -> Check:
    """Return whether SymPy agrees with every polynomial that the tree prints."""
    polynomials = tuple(dict.fromkeys(_polynomials(tree)))
    for polynomial in polynomials:
        if not agrees(polynomial, polynomial.text()):
            return Check(NAME, Verdict.NO, f"SymPy reads {polynomial.text()} as something else")
    return Check(NAME, Verdict.YES, f"{len(polynomials)} polynomials agree")


def agrees(polynomial: Polynomial, text: str) -> bool:
    """Say whether SymPy takes a text for the same polynomial; names mean nothing but themselves."""
    from sympy import QQ, Integer, Poly, Symbol
    from sympy.parsing.sympy_parser import parse_expr

    names = {name: Symbol(name) for name in polynomial.symbols}
    generators = [names[name] for name in sorted(names)] or [Symbol("_")]
    # SymPy's parser is Python's, where `lambda` and `class` cannot be names.
    spelled = {name: f"{name}_{number}" if keyword.iskeyword(name) else name for number, name in enumerate(names)}
    while len({*spelled.values()}) < len(spelled):
        spelled = {name: word if word == name else f"{word}_" for name, word in spelled.items()}
    text = re.sub(r"[A-Za-z_]\w*", lambda match: spelled.get(match[0], match[0]), text)
    local = {spelled[name]: symbol for name, symbol in names.items()}
    read = Poly(parse_expr(text, local_dict=local, global_dict={"Integer": Integer}), *generators, domain=QQ)
    return bool(read == polynomial.to_sympy())


def _polynomials(tree: ScheduleTree) -> Iterator[Polynomial]:
    for constraint in tree.start:
        yield from (constraint.left, constraint.right)
    for symbol in tree.derived:
        yield from symbol.operands
    for leaf in tree.leaves:
        for system in (*leaf.systems, *(one.limits for one in leaf.variants)):
            for constraint in system:
                yield from (constraint.left, constraint.right)
        for value in (value for one in leaf.variants for value in one.counters.values()):
            yield from (value.numerator, value.denominator)
    yield from _conditions(tree.root)


def _conditions(tree: Tree) -> Iterator[Polynomial]:
    if isinstance(tree, Node):
        yield from (tree.condition.left, tree.condition.right)
        yield from _conditions(tree.accept)
        yield from _conditions(tree.refuse)
