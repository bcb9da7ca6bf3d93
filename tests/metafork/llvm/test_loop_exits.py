"""Loops that are left at one place, as the text of the IR shows them."""

import pytest

from metafork.llvm.llvm_ir import module_text
from metafork.llvm.loop_exits import keep_counters, leave_once
from metafork.llvm.ptx_target import optimize, parsed
from tests.metafork.lowering.kernel_reader import read_kernel

BEFORE = ("sroa", "simplifycfg", "instcombine", "loop-simplify", "lcssa", "loop-rotate")


def loop(body, condition="i < n"):
    return f"void k(int n, const int *a, int *b) {{ for (int i = 0; {condition}; i += 1) {{ {body} }} }}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void k(int n, int *b) { b[n] = n; }", True),
        (loop("b[i] = a[i];"), True),
        (loop("if (a[i] > 3) b[i] = a[i]; else b[i] = n / a[i];"), True),
        (loop("for (int j = 0; j < a[i]; j += 1) b[j] = a[n + j];"), True),
        (loop("if (a[i] > 3) break; b[i] = a[i];"), False),
        (loop("b[i] = a[i];", "i < n && a[i] > b[i] / n"), False),
        (loop("for (int j = 0; j < n; j += 1) { if (a[j] > 3) break; b[i + j] = a[j]; }"), False),
        (loop("while (b[i] / a[i] < n) b[i] += 1;"), True),
    ],
)
def test_exits_are_counted(text, expected):
    assert leave_once(optimize(module_text(read_kernel(text)), BEFORE)) is expected


FOUR = "int i = {0}; for (; i < 4; i += 1) b[i] = 1;"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (FOUR.format("0"), True),
        (FOUR.format("a[0]") + " for (; i < 8; i += 1) b[i] = 2;", False),
        (FOUR.format("a[0]") + " b[0] = i;", False),
        ("float s = 0; for (int i = 0; i < n; i += 1) s += a[i]; b[0] = (int)s;", True),
        ("int s = 0; for (int i = 0; i < n; i += 1) s += a[i]; b[0] = s;", False),
    ],
)
def test_counters_behind_their_loops_are_seen(code, expected):
    text = f"void k(int n, const int *a, int *b) {{ {code} }}"
    assert keep_counters(optimize(module_text(read_kernel(text)), BEFORE)) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("  br label %a\na:\n  br i1 %x, label %a, label %b\nb:\n  ret void", True),
        ("a:\n  br label %b\nb:\n  br label %b", True),
        ("br label %1\n  br i1 %x, label %1, label %2\n  ret void", True),
        ("a:\n  switch i32 1, label %b [\n    i32 1, label %c\n  ]\nb:\n  ret void\nc:\n  ret void", False),
        (
            "a:\n  br i1 %x, label %b, label %c\nb:\n  br label %c\nc:\n  br i1 %y, label %b, label %d\nd:\n  ret void",
            False,
        ),
    ],
    ids=["a loop", "no end", "blocks without names", "a switch", "into the midst of a loop"],
)
def test_what_is_not_seen_is_not_said(body, expected):
    function = "define void @{}(i1 %x, i1 %y) {{\n{}\n}}\n"
    once, declared = function.format("once", "  ret void"), "declare void @other(i32)\n"
    text = function.format("k", body)
    assert leave_once(str(parsed(declared + text + once))) is expected
    assert leave_once(str(parsed(once + text))) is expected
