"""Small floating types of a file's text, as a compiler of C is told of them (``metafork/small_floats.h``)."""

from __future__ import annotations

from metafork.frontend.text.vocabulary import SMALL_FLOATS
from metafork.ir.arithmetic.math_functions import OF_SMALL
from metafork.ir.program import Call, parts_of
from metafork.ir.translation_unit import Schedule, TranslationUnit

_KNOWN = {"_Float16": "__FLT16_MAX__", "__fp16": "__ARM_FP16_FORMAT_IEEE", "__bf16": "__BFLT16_MAX__"}
"""What a compiler defines that has one of the types itself."""


def declarations(unit: TranslationUnit) -> list[str]:
    """Return what stands in front of a file's text: nothing where it has no such types."""
    if not unit.small_floats and not any(map(converts, unit.schedules)):
        return []
    lines = ['#include "metafork/small_floats.h"']
    for name in unit.small_floats:
        define = f"#define {name} metafork_{SMALL_FLOATS[name].spelling}"
        lines += [f"#if !defined({_KNOWN[name]})", define, "#endif"] if name in _KNOWN else [define]
    return lines


def converts(schedule: Schedule) -> bool:
    """Say whether a schedule has small floating-point numbers: compilers of C may not read its text, or otherwise."""
    calls = (part for part in parts_of(schedule.program.body) if isinstance(part, Call))
    return any(array.small for array in schedule.program.arrays) or any(one.name in OF_SMALL for one in calls)
