"""Programs on the emulated device: build them, call their functions, get what every launch did.

    device = Device()
    out = Path("matmul.out")
    module = device.load(out / "matmul.cu", host=out / "matmul_host.c", include=[out / "include"])
    launches = device.call(module, "matmul", n, 16, 16, 4, a, b, c)
    launches[0].kernel, launches[0].registers, launches[0].occupancy, launches[0].counts["warp_instructions"]

The host code is what nvcc makes of it, linked with runtime.cpp instead of the CUDA runtime: it chooses and shapes its
launches itself.  Each launch executes the kernel's SASS for all blocks and leaves its results in the program's memory.
"""

import ctypes
import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rig import cubin, tools

WARPS, BLOCKS, REGISTERS, SHARED_BYTES = 64, 32, 65536, 167936  # of a multiprocessor of compute capability 8.0


@dataclass(frozen=True, slots=True)
class Module:
    """A loaded program: its functions, its kernels and their disassembly."""

    number: int
    library: ctypes.CDLL | None
    kernels: dict[str, cubin.Kernel]
    sass: Path


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: its shape, what the kernel takes, and what it did (the counts of the runner)."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    stack_bytes: int
    shared_bytes: int
    occupancy: float
    counts: dict = field(repr=False)


def occupancy(registers, threads, shared_bytes):
    """The share of a multiprocessor's 64 warps that are resident on sm_80."""
    warps = -(-threads // 32)
    per_warp = max(256, -(-32 * registers // 256) * 256)
    blocks = min(WARPS // warps, BLOCKS, REGISTERS // per_warp // warps, SHARED_BYTES // (shared_bytes + 1024))
    return blocks * warps / WARPS


def argument(value):
    """Return a scalar or the address of an array as C takes it; raises TypeError for anything else."""
    match value:
        case np.ndarray():
            return value.ctypes.data_as(ctypes.c_void_p)
        case bool() | int():
            return ctypes.c_int(value)
        case np.float32():
            return ctypes.c_float(value)
        case np.float64():
            return ctypes.c_double(value)
    raise TypeError(f"{type(value).__name__}: arguments are arrays, int, numpy.float32 and numpy.float64")


class Device:
    """The emulated device; a process has one."""

    def __init__(self, timeout=900.0):
        self.timeout = timeout
        self.launches = []
        self._modules = []
        self._fault = None
        self._temporary = tempfile.TemporaryDirectory(prefix="device-", dir=_made(tools.WORK))
        self._folder = Path(self._temporary.name)
        self._runtime = ctypes.CDLL(str(tools.runtime()), mode=ctypes.RTLD_GLOBAL)
        number, text = ctypes.c_int, ctypes.c_char_p
        shape, words = ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
        launch = ctypes.CFUNCTYPE(number, number, text, shape, words, ctypes.c_size_t)
        attributes = ctypes.CFUNCTYPE(number, number, text, ctypes.POINTER(number))
        library = ctypes.CFUNCTYPE(number, text)
        # Held here: C keeps no reference.
        self._hooks = launch(self._launch), attributes(self._attributes), library(self._library)
        self._runtime.rig_hooks(*self._hooks)

    def load(self, source, host=None, include=(), flags=()):
        """Compile CUDA (and C of its host) for sm_80 and load it; raises RuntimeError with nvcc's messages."""
        number = len(self._modules)
        folder = _made(self._folder / str(number))
        places = [f"-I{path}" for path in (source.parent, *include)]
        objects = [folder / "device.o"]
        nvcc = ("nvcc", "-O3", "-std=c++17", "-arch=sm_80", "-cudart", "none", "-Xcompiler", "-fPIC")
        tools.command(
            *nvcc,
            "--keep",
            "--keep-dir",
            folder,
            *places,
            *flags,
            "-c",
            source.resolve(),
            "-o",
            objects[0],
            where=folder,
        )
        if host is not None:
            objects.append(folder / "host.o")
            gcc = ("gcc", "-std=gnu11", "-O2", "-w", "-fPIC", "-ffp-contract=off")
            tools.command(*gcc, *places, "-c", host, "-o", objects[1])
        shared = folder / "program.so"
        tools.command("g++", "-shared", "-Wl,-Bsymbolic", "-o", shared, *objects, "-lm")
        (binary,) = folder.glob("*.cubin")
        module = self._module(binary)
        self._runtime.rig_module(number)
        module = Module(number, ctypes.CDLL(str(shared)), module.kernels, module.sass)
        self._modules[number] = module
        return module

    def call(self, module, function, *arguments, on_device=False):
        """Call a C function of a module and return its launches; `on_device`: it expects arrays in device memory."""
        self.launches, self._fault = [], None
        entry = getattr(module.library, function)
        entry.restype = None
        if on_device:
            copies = [self._copy_in(value) if isinstance(value, np.ndarray) else None for value in arguments]
            entry(*(copy or argument(value) for copy, value in zip(copies, arguments, strict=True)))
            for copy, value in zip(copies, arguments, strict=True):
                if copy is not None:
                    ctypes.memmove(value.ctypes.data, copy, value.nbytes)
                    self._runtime.cudaFree(copy)
        else:
            entry(*(argument(value) for value in arguments))
        if self._fault is not None:
            raise self._fault
        return self.launches

    @staticmethod
    def serial(library, function, *arguments):
        """Call a C function of a library that has nothing to do with the device."""
        entry = getattr(library, function)
        entry.restype = None
        entry(*(argument(value) for value in arguments))

    def _copy_in(self, array):
        memory = ctypes.c_void_p()
        self._runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(array.nbytes))
        ctypes.memmove(memory, array.ctypes.data, array.nbytes)
        return memory

    def _module(self, binary):
        sass = binary.with_suffix(".sass")
        sass.write_text(tools.command(tools.nvdisasm(), binary))
        module = Module(len(self._modules), None, cubin.kernels(binary), sass)
        self._modules.append(module)
        return module

    def _guarded(self, work, otherwise):
        # An exception cannot pass through C: it is kept, and raised when the call is over.
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again behind the call
            self._fault = self._fault or error
            return otherwise

    def _attributes(self, module, name, numbers):
        def work():
            kernel = self._modules[module].kernels[name.decode()]
            numbers[0], numbers[1], numbers[2] = kernel.registers, kernel.shared_bytes, kernel.most_threads
            return 0

        return self._guarded(work, 98)

    def _library(self, text):
        def work():
            folder = _made(self._folder / str(len(self._modules)))
            (folder / "library.ptx").write_bytes(text)
            tools.command("ptxas", "-arch=sm_80", "-O3", "-o", folder / "library.cubin", folder / "library.ptx")
            return self._module(folder / "library.cubin").number

        return self._guarded(work, -1)

    def _launch(self, module, name, shape, arguments, shared_bytes):
        def work():
            kernel = self._modules[module].kernels[name.decode()]
            self.launches.append(self._execute(self._modules[module], kernel, list(shape[:6]), arguments, shared_bytes))
            return 0

        return self._guarded(work, 719)

    def _execute(self, module, kernel, shape, arguments, dynamic_bytes):
        grid, block = tuple(shape[:3]), tuple(shape[3:])
        parameters = bytearray(max((offset + size for offset, size in kernel.parameters), default=0))
        for (offset, size), address in zip(kernel.parameters, arguments[: len(kernel.parameters)], strict=True):
            parameters[offset : offset + size] = ctypes.string_at(address, size)
        shared = kernel.shared_bytes + dynamic_bytes
        job = [
            f"sass {module.sass}",
            f"kernel {kernel.name}",
            "grid {} {} {}".format(*grid),
            "block {} {} {}".format(*block),
            f"smem {shared}",
            f"param {parameters.hex()}",
        ]
        memory = list(self._allocations())
        for index, (address, size) in enumerate(memory):
            (self._folder / f"{index}.in").write_bytes(ctypes.string_at(address, size))
            job.append(f"memory {address} {size} {self._folder / f'{index}.in'} {self._folder / f'{index}.out'}")
        (self._folder / "job").write_text("\n".join(job) + "\n")
        statistics = self._folder / "statistics.json"
        words = [str(tools.runner()), str(self._folder / "job"), "--stats", str(statistics)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=self.timeout)
        if done.returncode != 0:
            raise RuntimeError(f"{kernel.name}: {done.stderr.strip() or done.returncode}")
        for index, (address, _) in enumerate(memory):
            out = self._folder / f"{index}.out"
            if out.exists():
                data = out.read_bytes()
                ctypes.memmove(address, data, len(data))
                out.unlink()
        threads = block[0] * block[1] * block[2]
        resident = occupancy(kernel.registers, threads, shared)
        counts = json.loads(statistics.read_text())
        return Launch(kernel.name, grid, block, kernel.registers, kernel.stack_bytes, shared, resident, counts)

    def _allocations(self):
        address, size, index = ctypes.c_void_p(), ctypes.c_size_t(), 0
        while self._runtime.rig_allocation(index, ctypes.byref(address), ctypes.byref(size)):
            yield address.value, size.value
            index += 1


def _made(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder
