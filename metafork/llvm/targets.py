"""What the LLVM IR of a kernel is made for: a device of NVIDIA's or AMD's, or the host for tests.

A target knows how IR reads the built-in variables, where memories live and what a barrier is; everything else of
``metafork.llvm.llvm_ir`` is the same for all.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from metafork.llvm.builder import I8, I16, I32, VOID, Function, Module, Value, constant, pointer

SHARED_NAME = "metafork_shared"

SPECIAL_REGISTERS = {
    f"{variable}.{axis}": f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
    for variable, register in (("threadIdx", "tid"), ("blockIdx", "ctaid"), ("blockDim", "ntid"), ("gridDim", "nctaid"))
    for axis in "xyz"
}
_AMDGPU_IDS = {"threadIdx": "llvm.amdgcn.workitem.id", "blockIdx": "llvm.amdgcn.workgroup.id"}
_AMDGPU_IMPLICIT = {"gridDim": (0, I32, 4), "blockDim": (12, I16, 2)}
"""Where the implicit arguments have extents in x (``hidden_block_count_x``, ``hidden_group_size_x``); type; bytes."""


AMDGPU_TRIPLE = "amdgcn-amd-amdhsa"


class Place(Protocol):
    """Where instructions are put: the module and the function of a lowering in progress."""

    module: Module
    function: Function


class Nvptx(Struct, frozen=True):
    """The device: special registers, address spaces and barriers as the NVPTX target has them.

    Where ``unroll`` is not 0 the IR says what the text of the kernel tells nvcc: places of threads are divided by an
    approximation, and LLVM is asked to unroll by that factor the loops that ``metafork.llvm.unroll_hints`` names.
    """

    unroll: int = 0

    triple: str = "nvptx64-nvidia-cuda"
    calling_convention: str = "ptx_kernel"
    global_space: int = 1
    shared_space: int = 3
    private_space: int = 0
    constant_space: int = 4
    hidden: tuple[str, ...] = ()

    def bounds(self, threads: int, blocks: int) -> str:
        """Return the attributes of a kernel of which a multiprocessor shall have so many blocks, of so many threads."""
        return f'"nvvm.maxntid"="{threads}" "nvvm.minctasm"="{blocks}"'

    def special_register(self, place: Place, name: str) -> Value:
        """Return the built-in variable of that name as an ``i32``."""
        return place.function.call(place.module.declare(SPECIAL_REGISTERS[name], I32, ()), ())

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block."""
        function = place.module.declare("llvm.nvvm.barrier.cta.sync.aligned.all", VOID, (I32,))
        place.function.call(function, (constant(I32, 0),))

    def shuffle(self, place: Place, word: Value, lane: Value) -> Value:
        """Return the ``i32`` that another lane of the warp hands in; all 32 lanes come here together."""
        function = place.module.declare("llvm.nvvm.shfl.sync.idx.i32", I32, (I32,) * 4)
        every, clamp = constant(I32, -1), constant(I32, 31)
        return place.function.call(function, (every, word, lane, clamp))

    def shared_base(self, place: Place) -> Value:
        """Return the address of the dynamic shared memory."""
        return _dynamic_shared_memory(place)


class Amdgpu(Struct, frozen=True):
    """A device of AMD's: arguments of code object version 5, address spaces and barriers as AMDGPU has them."""

    unroll: int = 0

    triple: str = AMDGPU_TRIPLE
    calling_convention: str = "amdgpu_kernel"
    global_space: int = 1
    shared_space: int = 3
    private_space: int = 5
    constant_space: int = 4
    hidden: tuple[str, ...] = ()

    def bounds(self, threads: int, blocks: int) -> str:
        """Return the attributes of a kernel; a multiprocessor has four execution units of 64 lanes, or two of 32."""
        waves = -(-threads * blocks // 256)
        return f'"amdgpu-flat-work-group-size"="1,{threads}" "amdgpu-waves-per-eu"="{waves}"'

    def special_register(self, place: Place, name: str) -> Value:
        """Return the built-in variable of that name as an ``i32``."""
        variable, axis = name.split(".")
        build, module = place.function, place.module
        if variable in _AMDGPU_IDS:
            return build.call(module.declare(f"{_AMDGPU_IDS[variable]}.{axis}", I32, ()), ())
        first, type_, size = _AMDGPU_IMPLICIT[variable]
        arguments = build.call(module.declare("llvm.amdgcn.implicitarg.ptr", pointer(self.constant_space), ()), ())
        at = constant(I32, first + "xyz".index(axis) * size)
        value = build.load(build.element(arguments, at, I8), type_)
        return value if type_ == I32 else build.cast("zext", value, I32)

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block, before and after which its threads see each other's memory."""
        place.function.put('fence syncscope("workgroup") release')
        place.function.call(place.module.declare("llvm.amdgcn.s.barrier", VOID, ()), ())
        place.function.put('fence syncscope("workgroup") acquire')

    def shuffle(self, place: Place, word: Value, lane: Value) -> Value:
        """Return the ``i32`` that another of 32 lanes hands in; in waves of 64 there are two such groups."""
        build, module = place.function, place.module
        every = constant(I32, -1)
        count = module.declare("llvm.amdgcn.mbcnt.lo", I32, (I32, I32))
        more = module.declare("llvm.amdgcn.mbcnt.hi", I32, (I32, I32))
        own = build.call(more, (every, build.call(count, (every, constant(I32, 0)))))
        group = build.binary("and", own, constant(I32, 32))
        source = build.binary("or", group, build.binary("and", lane, constant(I32, 31)))
        permute = module.declare("llvm.amdgcn.ds.bpermute", I32, (I32, I32))
        return build.call(permute, (build.binary("shl", source, constant(I32, 2)), word))

    def shared_base(self, place: Place) -> Value:
        """Return the address of the dynamic shared memory."""
        return _dynamic_shared_memory(place)


class Host(Struct, frozen=True):
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
    hidden: tuple[str, ...] = (pointer(), pointer(), pointer())
    unroll: int = 0

    def bounds(self, threads: int, blocks: int) -> str:
        """Return nothing: a processor has registers for what it runs."""
        return ""

    def special_register(self, place: Place, name: str) -> Value:
        """Return the built-in variable of that name as an ``i32``."""
        position = constant(I32, list(SPECIAL_REGISTERS).index(name))
        return place.function.load(place.function.element(place.function.arguments[0], position, I32), I32)

    def barrier(self, place: Place) -> None:
        """Put a barrier of the whole block."""
        place.function.call(Value(VOID, place.function.arguments[2].text), ())

    def shuffle(self, place: Place, word: Value, lane: Value) -> Value:
        """Refuse with ``ValueError``: one thread alone has no warp."""
        raise ValueError("a shuffle on a target that runs one thread")

    def shared_base(self, place: Place) -> Value:
        """Return the address of the dynamic shared memory."""
        return place.function.arguments[1]


def _dynamic_shared_memory(place: Place) -> Value:
    """Return the address of what a launch adds to the shared memory of a kernel: an external array without extent."""
    return place.module.variable(SHARED_NAME, "external {space}global [0 x i8], align 16", 3)


Target = Nvptx | Amdgpu | Host
