"""The stand-in for NVRTC's other half: a server that is asked to compile, and answers with PTX of the same kernel.

LLVM makes the PTX from the kernel form that the text was printed from, with the values of the macros that the text has.
"""

import re
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from metafork.ir.program import IntConst
from metafork.ir.rewriting import names_in, substitute, substitute_body
from metafork.llvm import llvm_ir
from metafork.llvm.ptx_target import emit_ptx
from tests.runtime.compiling import succeed


@dataclass
class Nvrtc:
    """Libraries, and what they were asked to compile: (name, values, options), each time; ``fault`` is the answer."""

    directory: Path
    kernels: dict[str, object] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, int], str]] = field(default_factory=list)
    fault: str = ""
    image: bytes | None = None
    compiler: object = None

    @property
    def variables(self):
        """The environment of a program that is to find it."""
        return {"METAFORK_NVRTC": str(self.directory / "libnvrtc.so"), "STANDIN_NVRTC": str(self.directory / "nvrtc")}

    def answer(self, name, options, text, header):
        """Return the log of a compilation that fails, and what one that does not makes."""
        values = {
            macro: int(number) for macro, number in re.findall(r"^#define METAFORK_STATIC_(\w+) (\d+)$", text, re.M)
        }
        self.asked.append((name, values, options.strip()))
        if self.fault:
            return self.fault.encode(), b""
        if self.image is not None:
            return b"", self.image
        made = (self.compiler or self._by_llvm)(name, values, text, header)
        return b"", made.encode() + b"\0"

    def _by_llvm(self, name, values, text, header):
        assert f"METAFORK_KERNEL(__global__ void, {name}, (" in text
        assert "#define METAFORK_KERNEL(" in header
        kernel = valued(self.kernels[name], values)
        large = replace(kernel, name=f"{name}_large")
        first, second = (emit_ptx(llvm_ir.module_text(one), "sm_80") for one in (kernel, large))
        return first + second.split(".address_size 64", 1)[1]


def valued(kernel, values):
    """Return the kernel form of a text with constants for its static parameters, which are ``int``s."""
    constants = {name: IntConst(value) for name, value in values.items()}
    taken = names_in(kernel.body)
    return replace(
        kernel,
        body=substitute_body(kernel.body, constants, taken),
        memories=tuple(
            replace(
                one,
                extent=substitute(one.extent, constants),
                offset=None if one.offset is None else substitute(one.offset, constants),
            )
            for one in kernel.memories
        ),
    )


@contextmanager
def nvrtc(directory):
    """Build the libraries (one lacks a function) and start the server; all is there inside of the ``with``."""
    source = Path(__file__).with_name("libnvrtc.c")
    for name, more in (("libnvrtc.so", ()), ("old.so", ("-DOLD",))):
        flags = ("-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *more)
        succeed(["gcc", *flags, source, "-o", directory / name])
    found = Nvrtc(directory)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(directory / "nvrtc"))
    listening.listen()

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return  # closed: the tests are over
            with connection, connection.makefile("rwb") as stream:
                asked = [stream.read(struct.unpack("<Q", stream.read(8))[0]).decode() for _ in range(4)]
                for part in found.answer(*asked):
                    stream.write(struct.pack("<Q", len(part)) + part)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield found
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
