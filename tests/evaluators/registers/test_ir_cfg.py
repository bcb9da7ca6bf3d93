import pytest

from evaluators.registers.ir_cfg import (
    live_points,
    liveness,
    most_live_registers,
    read_cfg,
    registers_of_type,
    thread_registers,
    uniform_values,
    with_folded_addresses,
)
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import TargetError, optimize
from tests.metafork.lowering.kernel_reader import read_kernel

LOOP = """
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(i32 %n, ptr addrspace(1) %a) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr double, ptr addrspace(1) %a, i32 %i
  %x = load double, ptr addrspace(1) %at
  %more = fadd double %sum, %x
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  store double %more, ptr addrspace(1) %a
  br label %exit
exit:
  ret void
}
"""


def test_blocks_and_edges():
    cfg = read_cfg(LOOP)
    assert [block.name for block in cfg.blocks] == ["entry", "loop", "done", "exit"]
    assert cfg.block("entry").successors == ("loop", "exit")
    assert set(cfg.block("loop").predecessors) == {"entry", "loop"}
    assert cfg.block("exit").successors == ()
    phi = cfg.block("loop").instructions[1]
    assert (phi.name, phi.opcode, phi.operands, phi.sources) == ("sum", "phi", ("more",), ("loop",))
    assert cfg.arguments == {"n": 1, "a": 2}


def test_liveness():
    live = liveness(read_cfg(LOOP))
    assert live.live_in["entry"] == {"n", "a"}
    assert live.live_out["entry"] == {"n", "a"}
    # What a phi reads on the back edge lives out of the loop's end, not into its head.
    assert live.live_out["loop"] == {"n", "a", "more", "next"}
    assert live.live_in["loop"] == {"n", "a"}
    assert live.live_in["done"] == {"a", "more"}
    assert live.live_out["exit"] == frozenset()


def test_registers_are_counted_at_the_fullest_point():
    cfg = read_cfg(LOOP)
    at = {(block, position): names for block, position, names in live_points(cfg)}
    assert at["loop", 2] == {"n", "a", "i", "sum", "at"}
    # n 1, a 2, i 1, sum 2 and the address 2, then the loaded double in its place.
    assert most_live_registers(cfg) == 8


@pytest.mark.parametrize(
    ("text", "registers"),
    [
        ("i1", 0),
        ("i8", 1),
        ("i32", 1),
        ("i64", 2),
        ("float", 1),
        ("double", 2),
        ("ptr", 2),
        ("ptr addrspace(1)", 2),
        ("ptr addrspace(3)", 1),
        ("<4 x float>", 4),
        ("{ i32, i1 }", 1),
        ("void", 0),
    ],
)
def test_sizes_of_types(text, registers):
    assert registers_of_type(text) == registers


def test_what_no_register_holds_is_refused():
    with pytest.raises(TargetError, match="x86_fp80"):
        registers_of_type("x86_fp80")


def test_unnamed_values_are_told_apart():
    kernel = read_kernel("void k(int n, const int *a, int *b) { int i = threadIdx.x; if (i < n) b[i] = a[i] * 2; }")
    cfg = read_cfg(optimize(module_text(kernel)))
    names = [one.name for block in cfg.blocks for one in block.instructions if one.name]
    assert len(names) == len(set(names)) >= 5
    assert any(one.callee == "llvm.nvvm.read.ptx.sreg.tid.x" for block in cfg.blocks for one in block.instructions)


SHARED_BY_A_BLOCK = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @"a kernel"(i32 %n, ptr addrspace(1) noalias readonly %0) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %thread = tail call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = mul nsw i32 %block, %n
  %2 = add i32 %first, %thread
  %here = getelementptr inbounds double, ptr addrspace(1) %0, i32 %2
  %next = getelementptr inbounds i8, ptr addrspace(1) %here, i64 8
  %x = load double, ptr addrspace(1) %here, align 8
  %y = load double, ptr addrspace(1) %next, align 8
  %3 = select i1 true, double %x, double %y
  switch i32 %n, label %last [
    i32 0, label %4
    i32 1, label %last
  ]

last:                                             ; preds = %1, %1
  store double %3, ptr addrspace(1) %next, align 8
  br label %4

4:                                                ; preds = %last, %1
  %5 = phi double [ %3, %last ], [ 0.000000e+00, %1 ]
  store double %5, ptr addrspace(1) %next, align 8
  ret void
}
"""


def test_names_in_quotes_and_numbers():
    cfg = read_cfg(SHARED_BY_A_BLOCK)
    assert cfg.name == "a kernel"
    assert cfg.arguments == {"n": 1, "0": 2}
    assert [block.name for block in cfg.blocks] == ["1", "last", "4"]
    assert cfg.block("1").successors == ("last", "4")
    assert cfg.block("4").predecessors == ("1", "last")
    phi = cfg.block("4").instructions[0]
    assert (phi.operands, phi.sources, phi.registers) == (("3",), ("last",), 2)


def test_what_a_block_shares_takes_no_register_of_a_thread():
    cfg = read_cfg(SHARED_BY_A_BLOCK)
    assert uniform_values(cfg) == {"n", "0", "block", "first"}
    folded = with_folded_addresses(cfg)
    assert "next" not in folded.registers()
    assert folded.block("4").instructions[1].operands == ("5", "here")
    # The address and the two doubles that are loaded from it; without folding there would be two addresses.
    assert thread_registers(cfg) == 6
