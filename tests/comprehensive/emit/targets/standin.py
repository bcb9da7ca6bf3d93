"""The stand-in driver's other half: a server that reads PTX and runs its kernels, and how programs are run with it.

``libcuda.c`` asks ``L`` (a module: its text) and ``R`` (a launch: kernel, shape, arguments and all memory of the
device).  Numbers are 64 bits wide, texts and bytes follow their length, and answers begin with a fault, empty where
there is none.
"""

import os
import socket
import struct
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.interpreter.variables import declared_size
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import PtxError
from tests.runtime.compiling import succeed

LATE = Path(__file__).parents[3] / "runtime"
"""The folder of what streams without a device are (``late_streams.h``)."""

REGISTERS = 40
"""What every kernel takes of the stand-in's device."""


@dataclass(frozen=True)
class Standin:
    """A directory with ``libcuda.so.1``, and the socket of the server that runs kernels."""

    directory: Path
    socket: Path

    def run(self, command, stdin="", *, log, **variables):
        """Run a program with the stand-in in place of the driver; return it finished, and what its calls were."""
        environment = {"LD_LIBRARY_PATH": str(self.directory), "STANDIN_SOCKET": str(self.socket), **variables}
        return watched(command, stdin, log, environment)


@dataclass
class Calls:
    """``names`` are the driver's functions in the order of the calls, ``ran`` the kernels, ``left`` what leaked."""

    names: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    ended: bool = False


def watched(command, stdin, log, environment):
    """Run a program whose library writes a log of its calls; return it finished, and what they were."""
    log.unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORK_")}
    done = subprocess.run(
        [str(part) for part in command], input=stdin, capture_output=True, text=True, check=False,
        env={**kept, "STANDIN_LOG": str(log), **environment}, timeout=300,
    )  # fmt: skip
    return done, calls_of(log.read_text() if log.exists() else "")


def calls_of(log):
    """Read a log of the stand-in."""
    calls = Calls()
    for line in log.splitlines():
        word, _, rest = line.partition(" ")
        match word:
            case "ran":
                calls.ran.append(rest)
            case "left":
                calls.left.append(rest)
            case "violation:":
                calls.violations.append(rest)
            case "end":
                calls.ended = True
            case _:
                calls.names.append(rest)
    return calls


@contextmanager
def standin(directory):
    """Build the library and start the server; both are there inside of the ``with``."""
    library = directory / "libcuda.so.1"
    source = Path(__file__).with_name("libcuda.c")
    warnings = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    late = LATE / "late_calls.cpp"
    succeed(["g++", "-std=c++17", "-O0", *warnings, "-fPIC", "-c", late, "-o", directory / "late.o"])
    succeed(["gcc", "-std=gnu11", "-O0", *warnings, f"-I{LATE}", "-fPIC", "-c", source, "-o", directory / "cuda.o"])
    objects = [directory / "cuda.o", directory / "late.o"]
    succeed(["g++", "-shared", *objects, "-o", library, "-lpthread"])
    path = directory / "socket"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return  # closed: the tests are over
            threading.Thread(target=Server(connection).serve, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield Standin(directory, path)
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


@cache
def parsed(text):
    """Parse PTX, each text once."""
    return parse(text)


@lru_cache(maxsize=64)  # a test that lets each call fail in turn runs the same kernels again and again
def ran(text, name, shape, shared_bytes, arguments, memory):
    """Run a kernel on (address, bytes) of all memory; return what is at fault, and the bytes afterwards."""
    device = GlobalMemory()
    for address, data in memory:
        device.upload(np.frombuffer(data, np.uint8), address=address)
    try:
        run_kernel(parsed(text), name, shape[:3], shape[3:], arguments, memory=device, shared_bytes=shared_bytes)
    except (PtxError, ValueError) as error:
        return str(error)[:400], ()
    return "", tuple(device.read(address, len(data), np.uint8).tobytes() for address, data in memory)


class Server:
    """One connection: the modules that a process has loaded."""

    def __init__(self, connection):
        self.stream = connection.makefile("rwb")
        self.modules = []

    def serve(self):
        with self.stream:
            while what := self.stream.read(1):
                (self._load if what == b"L" else self._run)()
                self.stream.flush()

    def _load(self):
        text = self._bytes().decode()
        try:
            kernels = parsed(text).kernels()
        except PtxError as error:
            self._say_bytes(f"fatal : {error}".encode())
            return
        self._say_bytes(b"")
        self._say(len(self.modules), len(kernels))
        self.modules.append(text)
        for kernel in kernels:
            self._say_bytes(kernel.name.encode())
            self._say(REGISTERS, 0, len(kernel.parameters))
            self._say(*(declared_size(one, one.declarators[0]) for one in kernel.parameters))

    def _run(self):
        module = self.modules[self._number()]
        name = self._bytes().decode()
        *shape, shared_bytes = (self._number() for _ in range(7))
        arguments = [self._bytes() for _ in range(self._number())]
        memory = tuple((self._number(), self._bytes()) for _ in range(self._number()))
        fault, after = ran(module, name, tuple(shape), shared_bytes, tuple(arguments), memory)
        self._say_bytes(fault.encode())
        for data in after:
            self.stream.write(data)

    def _number(self):
        return struct.unpack("<Q", self.stream.read(8))[0]

    def _bytes(self):
        return self.stream.read(self._number())

    def _say(self, *numbers):
        self.stream.write(struct.pack(f"<{len(numbers)}Q", *numbers))

    def _say_bytes(self, data):
        self._say(len(data))
        self.stream.write(data)
