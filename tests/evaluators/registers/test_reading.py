"""Text of PTX is read to code."""

import pytest

from metafork.evaluators.registers.code import Slow
from metafork.evaluators.registers.reading import read_code
from metafork.ptx.text.source import PtxError
from tests.evaluators.registers.ptx_modules import code_of_body, ptx_module
from tests.evaluators.registers.small_kernel import PTX


def test_code_is_read_into_blocks():
    code = read_code(PTX)
    blocks = code.blocks
    assert [block.successors for block in blocks] == [(2, 1), (2,), ()]
    load = next(one for one in blocks[0].instructions if one.form.loads)
    named = [[code.names[one] for one in registers] for registers in (load.defines, load.uses, load.address)]
    assert (load.form.mnemonic, *named) == ("ld.global.b32", ["%r2"], ["%rd3"], ["%rd3"])
    branch = blocks[0].instructions[-1]
    assert (branch.guarded, branch.uses) == (True, (code.names.index("%p1"),))
    assert blocks[0].instructions[1].special == ("%tid",)
    assert [one.form.slow for one in blocks[1].instructions] == [Slow.DIVIDE_FLOAT, None]


def test_a_module_with_no_kernel_or_two_is_refused():
    with pytest.raises(ValueError, match="0 kernels"):
        read_code(".version 8.0\n.target sm_80\n")
    second = PTX[PTX.index(".visible") :].replace("k(", "other(")
    with pytest.raises(ValueError, match="2 kernels"):
        read_code(PTX + second)
    with pytest.raises(PtxError, match="11:23"):
        read_code(ptx_module("\tld.param.b64 \t%rd1, [;\n"))
    with pytest.raises(PtxError, match="11:2: no label"):
        read_code(ptx_module("\tbra \t$NOWHERE;\n"))


def test_a_branch_by_a_table_goes_where_the_table_says():
    body = "".join(
        [
            "$table: .branchtargets $A, $B;\n",
            "\tbrx.idx \t%r1, $table;\n",
            "$A:\n\tbra \t$C;\n",
            "$B:\n\tbra \t$C;\n",
            "$C:\n",
        ]
    )
    assert [block.successors for block in code_of_body(body).blocks] == [(1, 2), (3,), (3,), ()]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("\tmov.b32 \t%r1, 1\n", 12),
        ("\tmov.b32 \t%r1, %r;2;\n", 11),
        ("\tbra \t$NOWHERE;\n", 11),
        ("$L:\n$L:\n", 12),
        ("\tld.global.b32 \t%r1, [%rd1;\n", 11),
    ],
)
def test_faults_are_found_where_they_stand(body, line):
    with pytest.raises(PtxError) as caught:
        read_code(ptx_module(body))
    assert caught.value.span.line == line


def test_operands_with_several_names_and_special_registers():
    code = code_of_body(
        """
	mov.u32 	%r1, %tid.x;
	ld.global.v2.b32 	{%r2, %r3}, [%rd1+8];
	st.shared.v2.b32 	[%rd2], {%r3, %r1};
	@!%p1 selp.b32 	%r4, 1, %r1, %p2;
	shfl.sync.down.b32 	%r5|%p3, %r1, 1, 31, -1;
"""
    )
    named = [
        (*([code.names[one] for one in registers] for registers in (one.defines, one.uses, one.address)), *one.special)
        for one in code.instructions()
    ]
    assert named == [
        (["%r1"], [], [], "%tid"),
        (["%r2", "%r3"], ["%rd1"], ["%rd1"]),
        ([], ["%rd2", "%r3", "%r1"], ["%rd2"]),
        (["%r4"], ["%r1", "%p2", "%p1"], []),
        (["%r5", "%p3"], ["%r1"], []),
        ([], [], []),
    ]
