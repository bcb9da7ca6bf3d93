"""What a cubin says of its kernels: parameters, registers, shared memory, stack, the most threads of a block.

A cubin is an ELF file; ``.nv.info.KERNEL`` holds records of a format byte, an attribute byte and a half word, which is
the value itself or the number of bytes that follow.
"""

import struct
from dataclasses import dataclass

PARAMETER, PARAMETER_BYTES, MAX_THREADS, REGISTERS, FRAME = 0x17, 0x19, 0x05, 0x2F, 0x11


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel; parameters are (offset, bytes) in their order."""

    name: str
    parameters: tuple[tuple[int, int], ...]
    registers: int
    shared_bytes: int
    stack_bytes: int
    most_threads: int


def _sections(data):
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * index) for index in range(count)]
    strings = headers[names][4]
    found = {}
    for index, header in enumerate(headers):
        end = data.index(b"\0", strings + header[0])
        found[data[strings + header[0] : end].decode()] = (index, header)
    return found


def _records(data, header):
    at, end = header[4], header[4] + header[5]
    while at + 4 <= end:
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        payload = b""
        if form == 4:
            payload = data[at : at + value]
            at += value
        yield attribute, value, payload


def kernels(path):
    """Return the kernels of a cubin, by name."""
    data = path.read_bytes()
    sections = _sections(data)
    names = {}
    symbols, text = sections[".symtab"][1], sections[".strtab"][1][4]
    for index in range(symbols[5] // 24):
        (name,) = struct.unpack_from("<I", data, symbols[4] + 24 * index)
        names[index] = data[text + name : data.index(b"\0", text + name)].decode()
    registers, frames = {}, {}
    for attribute, _, payload in _records(data, sections[".nv.info"][1]):
        if attribute in (REGISTERS, FRAME):
            symbol, number = struct.unpack("<II", payload)
            (registers if attribute == REGISTERS else frames)[names[symbol]] = number
    found = {}
    for section, (_, header) in sections.items():
        if not section.startswith(".nv.info."):
            continue
        name = section.removeprefix(".nv.info.")
        if name not in registers:
            continue
        parameters, threads = {}, 1024
        for attribute, _, payload in _records(data, header):
            if attribute == PARAMETER:
                _, ordinal, offset, flags = struct.unpack("<IHHI", payload)
                parameters[ordinal] = (offset, flags >> 18)
            elif attribute == MAX_THREADS:
                x, y, z = struct.unpack("<III", payload)
                threads = x * y * z
        shared = sections.get(f".nv.shared.{name}")
        found[name] = Kernel(
            name,
            tuple(parameters[ordinal] for ordinal in sorted(parameters)),
            registers[name],
            shared[1][5] if shared is not None else 0,
            frames.get(name, 0),
            min(threads, 65536 // (-(-registers[name] // 8) * 8) // 32 * 32),
        )
    return found
