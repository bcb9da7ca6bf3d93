"""What the LLVM IR of a kernel is made for: the device, or the host for tests.

A target knows how IR reads the built-in variables, where memories live and what a barrier is; everything else of
``metafork.llvm.llvm_ir`` is the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from llvmlite import ir

from metafork.lazy_dataclass import dataclass

# llvmlite calls only through pointers of which it knows the type; to LLVM they are all alike.
_BARRIER = ir.FunctionType(ir.VoidType(), ()).as_pointer()
_I8, _I32 = ir.IntType(8), ir.IntType(32)

SHARED_NAME = "metafork_shared"

SPECIAL_REGISTERS = {
    f"{variable}.{axis}": f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
    for variable, register in (("threadIdx", "tid"), ("blockIdx", "ctaid"), ("blockDim", "ntid"), ("gridDim", "nctaid"))
    for axis in "xyz"
}


def opaque(value: ir.Value, space: int) -> ir.Value:
    """Forget what a pointer points to, as LLVM itself has done; llvmlite's builder still types some of them."""
    value.type = ir.PointerType(addrspace=space)
    return value


class Place(Protocol):
    """Where instructions are put: the module, function and builder of a lowering in progress."""

    module: ir.Module
    function: ir.Function
    builder: ir.IRBuilder

    def external(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        """Return the declaration of a function, made at its first use."""
        ...


@dataclass(frozen=True, slots=True)
class Nvptx:
    """The device: special registers, address spaces and barriers as the NVPTX target has them.

    ``unroll`` asks LLVM to unroll by that factor the loops that ``metafork.llvm.unroll_hints`` names (0: no hints).
    """

    unroll: int = 0

    triple: str = "nvptx64-nvidia-cuda"
    calling_convention: str = "ptx_kernel"
    global_space: int = 1
    shared_space: int = 3
    hidden: tuple[ir.Type, ...] = ()

    def special_register(self, place: Place, name: str) -> ir.Value:
        """Return the built-in variable of that name as an ``i32``."""
        function = place.external(SPECIAL_REGISTERS[name], _I32, ())
        return place.builder.call(function, ())

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block."""
        function = place.external("llvm.nvvm.barrier.cta.sync.aligned.all", ir.VoidType(), (_I32,))
        place.builder.call(function, (ir.Constant(_I32, 0),))

    def shuffle(self, place: Place, word: ir.Value, lane: ir.Value) -> ir.Value:
        """Return the ``i32`` that another lane of the warp hands in; all 32 lanes come here together."""
        function = place.external("llvm.nvvm.shfl.sync.idx.i32", _I32, (_I32,) * 4)
        every, clamp = ir.Constant(_I32, -1), ir.Constant(_I32, 31)
        return place.builder.call(function, (every, word, lane, clamp))

    def shared_base(self, place: Place) -> ir.Value:
        """Return the address of the dynamic shared memory."""
        variable = ir.GlobalVariable(place.module, ir.ArrayType(_I8, 0), SHARED_NAME, addrspace=3)
        variable.linkage, variable.align = "external", 16
        return opaque(variable, 3)


@dataclass(frozen=True, slots=True)
class Host:
    """A processor that runs one thread of the kernel as a C function; how tests execute the IR.

    Three arguments come before the kernel's own: the twelve built-in variables in the order of
    ``SPECIAL_REGISTERS`` (``i32 *``), the shared memory, and a function of no arguments that is the barrier.
    """

    triple: str
    calling_convention: str = ""
    global_space: int = 0
    shared_space: int = 0
    hidden: tuple[ir.Type, ...] = (ir.PointerType(), ir.PointerType(), _BARRIER)
    unroll: int = 0

    def special_register(self, place: Place, name: str) -> ir.Value:
        """Return the built-in variable of that name as an ``i32``."""
        position = ir.Constant(_I32, list(SPECIAL_REGISTERS).index(name))
        address = place.builder.gep(place.function.args[0], (position,), source_etype=_I32)
        return place.builder.load(address, typ=_I32)

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block."""
        place.builder.call(place.function.args[2], ())

    def shuffle(self, place: Place, word: ir.Value, lane: ir.Value) -> ir.Value:
        """Refuse with ``ValueError``: one thread alone has no warp."""
        raise ValueError("a shuffle on a target that runs one thread")

    def shared_base(self, place: Place) -> ir.Value:
        """Return the address of the dynamic shared memory."""
        return place.function.args[1]


Target = Nvptx | Host
