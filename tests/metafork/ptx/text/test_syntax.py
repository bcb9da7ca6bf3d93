"""Reading and printing PTX: what compilers emit survives, and errors point at their place."""

import re
import shutil
import subprocess

import pytest

from metafork.ptx.text.cfg import build_cfg
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.parser import parse
from metafork.ptx.text.printer import print_instruction, print_module
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Address, Immediate, Name, Pair, Vector
from tests.metafork.ptx.kernels import CASES
from tests.metafork.ptx.snippets import kernel

ODDITIES = r"""
.version 8.5
.target sm_80, debug
.address_size 64
.file 1 "dir/a.cu"
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 values);
.weak .global .attribute(.managed) .align 4 .b8 managed[12] = {1, 2, 0xFF, 4};
.const .align 8 .f64 table[2] = {0d3FF0000000000000, 2.5};
.global .align 8 .u64 pointers[2] = {generic(table), 0};
.extern .shared .align 16 .b8 dynamic[];
.global .texref image;
.visible .func (.param .b64 out) helper(.param .b32 x) .noreturn { ret; }
.func nothing;
.visible .entry k(
    .param .u64 .ptr .global .align 8 a, /* a comment
    over two lines */ .param .align 4 .b8 structure[20], .param .u64 .ptr .shared .restrict c
)
.maxntid 128, 1, 1
.minnctapersm 2
.pragma "nounroll";
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>, x, y;
    .reg .v4 .f32 quad;
    .local .align 8 .b8 depot[16];
    .loc 1 7 9
START:
    .loc 1 8 3, function_name INFO, inlined_at 1 9 1
    mov.u32 %r1, %tid.x; // a comment
    @!%p1 bra.uni START;
    setp.lt.and.f32 %p1|%p2, quad.x, 0f3F800000, !%p2;
    ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%r1, %r2, _, %r4}, [a+-16];
    { .reg .b32 x; mov.b32 x, %r1; add.s32 %r2, x, 1; }
    { .reg .b32 x; mov.b32 x, %r3; L: @%p1 bra L; }
    mov.u64 %r3, managed+8;
    { .param .b32 argument; .param .b32 back; st.param.b32 [argument], %r1;
      call.uni (back), helper, (argument); ld.param.b32 %r5, [back]; }
    TARGETS: .branchtargets START, END;
    brx.idx %r1, TARGETS;
    prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);
    call (%r1), %r3, (%r2), prototype_0;
    tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [image, {%r5, %r6}];
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%r2, {%r3}], [%r4];
    wholly.new.opcode.b99 %r1, {%r2, 3}, [%r3+4], -5, 1.5, 0d4000000000000000;
    shf.l.wrap.b32 %r1, %r2, -0x10, 1U;
    ;
END:
    exit;
}
.section .debug_info
{
.b32 17
info: .b8 1, 2
.b64 .debug_abbrev
}
.alias other, helper;
"""


def spans_off(module):
    return re.sub(r"Span\(line=\d+, column=\d+\)", "", repr(module))


@pytest.mark.parametrize("text", [ODDITIES, *(case.text for case in CASES)], ids=["oddities", *(c.name for c in CASES)])
def test_printing_and_reading_again_gives_the_same_module(text):
    module = parse(text)
    assert spans_off(parse(print_module(module))) == spans_off(module)


@pytest.mark.parametrize("text", [case.text for case in CASES], ids=[case.name for case in CASES])
def test_an_instruction_reads_the_same_however_it_is_spaced(text):
    # A blank before a semicolon is in no instruction that the lexer takes whole.
    spaced = re.sub(r"^(\s+[@a-z][^;{}\n]*);", r"\1 ;", text, flags=re.MULTILINE)
    assert spaced != text
    assert spans_off(parse(spaced)) == spans_off(parse(text))


def test_what_is_carried_through():
    printed = print_module(parse(ODDITIES))
    for text in (
        '.file 1 "dir/a.cu"', ".loc 1 8 3, function_name INFO, inlined_at 1 9 1", "wholly.new.opcode.b99 %r1, {%r2, 3}",
        "[%r2, {%r3}]", "{1, 2, 0xFF, 4}", "{generic(table), 0}", ".b64 .debug_abbrev", ".maxntid 128, 1, 1",
        ".param .u64 .ptr .shared .restrict c", ".attribute(.managed)", "TARGETS:", ".branchtargets START, END;",
        ".pragma \"nounroll\";", ".alias other, helper;",
    ):  # fmt: skip
        assert text in printed


def test_the_representation():
    module = parse(kernel("ld.global.nc.v2.f32 {%f1, %f2}, [%rd4+-8]; @!%p1 setp.eq.s32 %p1|%p2, %r1, 0x1F;"))
    assert module.version == (8, 0)
    assert module.target == ("sm_80",)
    (function,) = module.kernels()
    load, compare = flatten(function).instructions[-3:-1]
    assert (load.opcode, load.modifiers) == ("ld", ("global", "nc", "v2", "f32"))
    assert load.operands == (Vector((Name("%f1"), Name("%f2"))), Address(Name("%rd4"), -8))
    assert compare.guard is not None
    assert (compare.guard.negated, compare.operands[0]) == (True, Pair(Name("%p1"), Name("%p2")))
    assert compare.operands[2] == Immediate("0x1F")
    assert print_instruction(compare) == "@!%p1 setp.eq.s32 %p1|%p2, %r1, 0x1F;"


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        (".version 8.0\n.target sm_80\n.global .b32 x\n.global .b32 y;", 4, 1, "expected ';' after the declaration"),
        (
            ".version 8.0\n.target sm_80\n.entry k() {\n  add.s32 %r1 %r2;\n}",
            4,
            15,
            "expected ';' after the operands of add",
        ),
        (".version 8.0\n.target sm_80\n.entry k() {\n  add.s32 %r1, ,;\n}", 4, 16, "expected an operand"),
        (
            ".version 8.0\n.target sm_80\n.entry k() {\n  ret;\n",
            5,
            1,
            "expected '}' at the end of the body, found end of file",
        ),
        (".version 8.0\n.target sm_80\n.entry k() {\n  ld.u32 %r1, [%r2;\n}", 4, 19, "expected ']'"),
        (".version 8.0\n.target sm_80\n.reg .b17 %x;", 3, 6, "expected a type"),
        (".version eight\n", 1, 10, "expected a version such as 8.0"),
        (".target sm_80\n.func f;", 2, 1, "expected '.version'"),
        (".version 8.0\n`", 2, 1, "no PTX token starts with '`'"),
        ("", 1, 1, "expected '.version' at the head of the module"),
    ],
)
def test_errors_point_at_their_place(text, line, column, reason):
    with pytest.raises(PtxError) as error:
        parse(text)
    assert (error.value.span.line, error.value.span.column) == (line, column)
    assert error.value.reason.startswith(reason)


def test_the_caret_stands_under_the_column():
    text = ".version 8.0\n.target sm_80\n\t.reg .b17 %x;"
    with pytest.raises(PtxError) as error:
        parse(text)
    assert error.value.render(text, "k.ptx").splitlines() == [
        "k.ptx:3:7: error: expected a type, '.align' or a name, found '.b17'", "\t.reg .b17 %x;", "\t     ^",
    ]  # fmt: skip


class TestFlatten:
    def test_names_of_scopes_are_told_apart(self):
        body = flatten(parse(ODDITIES).kernels()[0])
        movs = [str(i.operands[0]) for i in body.instructions if i.opcode == "mov" and "x" in str(i.operands[0])]
        assert len(set(movs)) == 2
        assert all(name in body.registers for name in movs)

    def test_a_name_declared_twice(self):
        with pytest.raises(PtxError, match="%r0 is declared twice"):
            flatten(parse(kernel(".reg .b32 %r<3>;")).kernels()[0])


class TestCfg:
    def cfg(self, body):
        return build_cfg(flatten(parse(kernel(body)).kernels()[0]))

    def test_a_loop_and_its_controllers(self):
        cfg = self.cfg("mov.u32 %r9, 0; L: add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, 5; @%p2 bra L; mov.u32 %r9, 1;")
        # 0: guard, 1: before the loop, 2: the loop, 3: behind, 4: DONE
        assert {header: sorted(loop.blocks) for header, loop in cfg.loops.items()} == {2: [2]}
        assert cfg.blocks[2].successors == (2, 3)
        assert cfg.blocks[4].successors == (EXIT,)
        assert {block: sorted(by) for block, by in cfg.controllers.items()} == {0: [], 1: [0], 2: [0, 2], 3: [0], 4: []}
        assert "%r9" in cfg.live[2]
        assert "%r9" not in cfg.live[4]

    def test_an_unknown_label(self):
        with pytest.raises(PtxError, match="no label NOWHERE"):
            self.cfg("bra NOWHERE;")


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
def test_scopes_and_odd_forms_assemble_after_a_round_trip(tmp_path):
    asm = "{ .reg .pred p; .reg .b32 t; setp.ne.s32 p, %r1, 0; @!p bra SKIP; mov.b32 t, 4; add.s32 %r9, %r9, t; SKIP: }"
    text = kernel(f"mov.u32 %r9, 0; {asm} {asm} st.global.u32 [%rd5], %r9;", directives=".maxntid 128, 1, 1")
    for name, ptx in (("before", text), ("after", print_module(parse(text)))):
        (tmp_path / f"{name}.ptx").write_text(ptx)
        command = ["ptxas", "-arch=sm_80", str(tmp_path / f"{name}.ptx"), "-o", str(tmp_path / f"{name}.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
