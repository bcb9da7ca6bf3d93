"""What the LLVM IR of a kernel is made for: a device of NVIDIA's or AMD's, or the host for tests.

A target knows how IR reads the built-in variables, where memories live and what a barrier is; everything else of
``metafork.llvm.llvm_ir`` is the same for all.
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
_AMDGPU_IDS = {"threadIdx": "llvm.amdgcn.workitem.id", "blockIdx": "llvm.amdgcn.workgroup.id"}
_AMDGPU_IMPLICIT = {"gridDim": (0, _I32), "blockDim": (12, ir.IntType(16))}
"""Where the implicit arguments have extents in x, and their type: ``hidden_block_count_x``, ``hidden_group_size_x``."""


AMDGPU_TRIPLE = "amdgcn-amd-amdhsa"


def stack_slot(place: Place, type_: ir.Type, name: str) -> ir.Value:
    """Return memory of the thread in the address space that the target has for it."""
    space = place.target.private_space
    slot = place.builder.alloca(type_, name=name)
    if space != 0:
        # llvmlite knows no address space of its instruction, and prints the type as it is.
        slot.allocated_type = f"{type_}, addrspace({space})"
    return opaque(slot, space)


def opaque(value: ir.Value, space: int) -> ir.Value:
    """Forget what a pointer points to, as LLVM itself has done; llvmlite's builder still types some of them."""
    value.type = ir.PointerType(addrspace=space)
    return value


class Place(Protocol):
    """Where instructions are put: the module, function and builder of a lowering in progress."""

    module: ir.Module
    function: ir.Function
    builder: ir.IRBuilder

    @property
    def target(self) -> Target:
        """What the IR is made for."""
        ...

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
    private_space: int = 0
    constant_space: int = 4
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
        return _dynamic_shared_memory(place)


@dataclass(frozen=True, slots=True)
class Amdgpu:
    """A device of AMD's: arguments of code object version 5, address spaces and barriers as AMDGPU has them."""

    unroll: int = 0

    triple: str = AMDGPU_TRIPLE
    calling_convention: str = "amdgpu_kernel"
    global_space: int = 1
    shared_space: int = 3
    private_space: int = 5
    constant_space: int = 4
    hidden: tuple[ir.Type, ...] = ()

    def special_register(self, place: Place, name: str) -> ir.Value:
        """Return the built-in variable of that name as an ``i32``."""
        variable, axis = name.split(".")
        if variable in _AMDGPU_IDS:
            return place.builder.call(place.external(f"{_AMDGPU_IDS[variable]}.{axis}", _I32, ()), ())
        first, type_ = _AMDGPU_IMPLICIT[variable]
        constant = ir.PointerType(addrspace=4)
        arguments = place.builder.call(place.external("llvm.amdgcn.implicitarg.ptr", constant, ()), ())
        at = ir.Constant(_I32, first + "xyz".index(axis) * type_.width // 8)
        value = place.builder.load(place.builder.gep(arguments, (at,), source_etype=_I8), typ=type_)
        return value if type_ == _I32 else place.builder.zext(value, _I32)

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block, before and after which its threads see each other's memory."""
        place.builder.fence("release", "workgroup")
        place.builder.call(place.external("llvm.amdgcn.s.barrier", ir.VoidType(), ()), ())
        place.builder.fence("acquire", "workgroup")

    def shuffle(self, place: Place, word: ir.Value, lane: ir.Value) -> ir.Value:
        """Return the ``i32`` that another of 32 lanes hands in; in waves of 64 there are two such groups."""
        build = place.builder
        every = ir.Constant(_I32, -1)
        count = place.external("llvm.amdgcn.mbcnt.lo", _I32, (_I32, _I32))
        more = place.external("llvm.amdgcn.mbcnt.hi", _I32, (_I32, _I32))
        own = build.call(more, (every, build.call(count, (every, ir.Constant(_I32, 0)))))
        group = build.and_(own, ir.Constant(_I32, 32))
        source = build.or_(group, build.and_(lane, ir.Constant(_I32, 31)))
        permute = place.external("llvm.amdgcn.ds.bpermute", _I32, (_I32, _I32))
        return build.call(permute, (build.shl(source, ir.Constant(_I32, 2)), word))

    def shared_base(self, place: Place) -> ir.Value:
        """Return the address of the dynamic shared memory."""
        return _dynamic_shared_memory(place)


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
    private_space: int = 0
    constant_space: int = 0
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


def _dynamic_shared_memory(place: Place) -> ir.Value:
    """Return the address of what a launch adds to the shared memory of a kernel: an external array without extent."""
    variable = ir.GlobalVariable(place.module, ir.ArrayType(_I8, 0), SHARED_NAME, addrspace=3)
    variable.linkage, variable.align = "external", 16
    return opaque(variable, 3)


Target = Nvptx | Amdgpu | Host
