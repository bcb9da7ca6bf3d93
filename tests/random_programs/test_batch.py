"""The batch mode of fuzzing: right programs pass on every leaf, and each kind of wrong one is found and ends alone."""

import pytest
from msgspec.structs import replace

from metafork.comprehensive.emit import LeafCode
from metafork.comprehensive.verification import plain_code
from metafork.ir.program import Assign, Element, For, If, IntConst, While, binary
from metafork.printing.cuda import kernel_text
from tests.random_programs.batch import check_batch, prepare
from tests.random_programs.checking import KINDS
from tests.random_programs.fuzz import fuzz_batches
from tests.random_programs.generator import Generator, file_text

SEEDS = range(40000, 40008)
VICTIM = 40003


def damaged(edit):
    """A ``code_of`` that changes the text of one program's kernels."""

    def code(leaf):
        plain = plain_code(leaf)
        return replace(plain, text=edit(plain.text)) if leaf.kernel.startswith(f"p{VICTIM}_") else plain

    return code


def within_first_brace(more):
    return lambda text: text.replace("{\n", "{\n" + more + "\n", 1)


def test_every_leaf_of_a_batch_runs_and_is_right():
    found = check_batch(SEEDS)
    assert found.failures == {}
    assert found.ran == found.variants > len(SEEDS)
    assert found.launches > 6 * found.variants


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("pointers", 60001),
        ("sums", 12004),
        ("strips", 16000),
        ("elements", 34),
        ("everyday", 70017),
        ("everyday", 70022),
        ("forms", 72000),
        ("sums", 710035),
        ("small", 12),
        ("complex", 3),
    ],
)
@pytest.mark.slow
def test_programs_of_other_kinds_are_right(kind, seed):
    found = check_batch([seed], KINDS[kind])
    assert found.failures == {}
    assert found.ran == found.variants > 0
    if kind == "strips":
        (tree,) = prepare(seed, file_text([seed], KINDS[kind])).trees
        assert any("strip_mining" in one.strategies for leaf in tree.leaves for one in leaf.variants)
    if kind == "sums":
        assert len(prepare(seed, file_text([seed], KINDS[kind])).trees) == 2


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (within_first_brace("  return;"), "whole grid: w"),
        (within_first_brace("  abort();"), "signal 6"),
        (within_first_brace("  for (volatile int metafork_x = 1; metafork_x;);"), "signal 27"),
        (within_first_brace("  this is no C"), "error:"),
        (lambda text: text.replace(", gridDim.x)", ", 2 * gridDim.x)", 1), "grid_dim_x"),
    ],
    ids=["nothing done", "crash", "endless", "no C", "grid loop"],
)
@pytest.mark.sampled(1)
def test_a_wrong_program_fails_alone(edit, told):
    found = check_batch([VICTIM - 1, VICTIM, VICTIM + 1], code_of=damaged(edit), seconds=1)
    assert found.failures.keys() == {VICTIM}
    assert told in found.failures[VICTIM]


def test_writes_outside_of_an_array_are_seen():
    def shifted(body):
        """Every element of an output is written three places too early."""
        result = []
        for stmt in body:
            match stmt:
                case If(then=then, otherwise=otherwise):
                    stmt = replace(stmt, then=shifted(then), otherwise=shifted(otherwise))
                case For(body=inner) | While(body=inner):
                    stmt = replace(stmt, body=shifted(inner))
                case Assign(target=Element(array=name, indices=(index,)) as target) if name.startswith("w"):
                    stmt = replace(stmt, target=replace(target, indices=(binary("-", index, IntConst(3)),)))
            result.append(stmt)
        return tuple(result)

    def code(leaf):
        kernel = plain_code(leaf).kernel
        kernel = replace(kernel, body=shifted(kernel.body))
        return LeafCode(kernel, kernel_text(kernel))

    found = check_batch([VICTIM], code_of=code)
    assert "whole grid: w" in found.failures[VICTIM]
    assert " -" in found.failures[VICTIM].split("\npoint")[0]


def test_programs_that_cannot_be_optimized_are_failures_too():
    class Wrong(Generator):
        def text(self):
            return (
                super().text().replace("meta_schedule", "meta_schedul") if self.name.endswith("3") else super().text()
            )

    found = check_batch([VICTIM, VICTIM + 1], generator=Wrong)
    assert found.failures.keys() == {VICTIM}


def test_failures_are_kept(tmp_path, monkeypatch, capsys):
    class Wrong(Generator):
        def text(self):
            return "void f( {"

    monkeypatch.setattr("tests.random_programs.fuzz.ProcessPoolExecutor", Serial)
    monkeypatch.setitem(KINDS, "wrong", Wrong)
    assert fuzz_batches(1, 2, tmp_path, jobs=1, kind="wrong") == 2
    assert {path.name for path in tmp_path.iterdir()} == {f"batch_{n}.{kind}" for n in (1, 2) for kind in ("mf", "txt")}
    assert "2 programs, 2 failed; 0 of 0 variants ran" in capsys.readouterr().out


class Serial:
    """An executor in this process: a class of this test cannot be sent to another one."""

    def __init__(self, jobs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, function, parts):
        return map(function, parts)
