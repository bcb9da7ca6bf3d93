"""What AMD's object code says of its kernels: the metadata note of an ELF file (code object version 3 and later).

The note of the owner ``AMDGPU`` and type 32 is a MessagePack map, whose ``amdhsa.kernels`` has a map for each kernel
("User Guide for AMDGPU Backend", LLVM, "Code Object V3 Metadata").  It is read from the object itself: what is told
is what was written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_NOTES, _METADATA = 7, 32
"""``SHT_NOTE`` of ELF, and ``NT_AMDGPU_METADATA``."""


class NoMetadataError(ValueError):
    """Bytes that are no object code of AMD's with metadata; the message says what is missing."""


class Resources(Struct, frozen=True):
    """What a kernel takes of a GPU, as its compiler says.

    Registers are of 32 bits, ``vgprs`` (accumulation registers included) for each thread and ``sgprs`` for each wave
    of ``wave_size`` threads; ``lds_bytes`` is the shared memory beside that of the launch, ``scratch_bytes`` the memory
    of a thread, in which ``spilled`` registers live.
    """

    vgprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    spilled: int
    wave_size: int
    most_threads: int

    def __str__(self) -> str:
        spilled = f" and {self.spilled} spilled" if self.spilled else ""
        scratch = f", {self.scratch_bytes} bytes of scratch memory" if self.scratch_bytes else ""
        lds = f"{self.lds_bytes} bytes of LDS beside the launch's"
        return f"{self.vgprs} VGPRs{spilled}, {self.sgprs} SGPRs, {lds}{scratch}, in waves of {self.wave_size}"


def resources_of(code: bytes, kernel: str) -> Resources:
    """Return what a kernel of an object takes.  Raises ``NoMetadataError``."""
    for one in _metadata(code).get("amdhsa.kernels", ()):
        if one.get(".name") == kernel:
            return Resources(
                vgprs=one[".vgpr_count"],
                sgprs=one[".sgpr_count"],
                lds_bytes=one[".group_segment_fixed_size"],
                scratch_bytes=one[".private_segment_fixed_size"],
                spilled=one.get(".vgpr_spill_count", 0),
                wave_size=one[".wavefront_size"],
                most_threads=one[".max_flat_workgroup_size"],
            )
    raise NoMetadataError(f"the object has no kernel {kernel}")


def _metadata(code: bytes) -> dict[str, Any]:
    if code[:5] != b"\x7fELF\x02":
        raise NoMetadataError("this is no ELF file of 64 bits")
    for owner, kind, text in _notes(code):
        if (owner, kind) == (b"AMDGPU\0", _METADATA):
            found, _ = _unpacked(text, 0)
            assert isinstance(found, dict)
            return found
    raise NoMetadataError("the object has no metadata of AMD's")


def _notes(code: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield owner, type and content of the notes."""
    (headers,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    for number in range(count):
        kind, _, _, place, length = struct.unpack_from("<IQQQQ", code, headers + size * number + 4)
        at = place
        while kind == _NOTES and at + 12 <= place + length:
            name_size, text_size, note = struct.unpack_from("<III", code, at)
            text = at + 12 + -(-name_size // 4) * 4
            yield code[at + 12 : at + 12 + name_size], note, code[text : text + text_size]
            at = text + -(-text_size // 4) * 4


_NUMBERS = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
_LENGTHS = {0xD9: "B", 0xDA: "H", 0xDB: "I", 0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpacked(text: bytes, at: int) -> tuple[Any, int]:
    """Return the MessagePack value at a place, and where it ends; AMD's notes have maps, arrays, texts and numbers."""
    tag, at = text[at], at + 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _NUMBERS:
        (number,) = struct.unpack_from(">" + _NUMBERS[tag], text, at)
        return number, at + struct.calcsize(_NUMBERS[tag])
    if tag < 0xC0:
        count = tag & (0x1F if tag >= 0xA0 else 0x0F)
    elif tag in _LENGTHS:
        (count,) = struct.unpack_from(">" + _LENGTHS[tag], text, at)
        at += struct.calcsize(_LENGTHS[tag])
    else:
        raise NoMetadataError(f"the metadata has a value of the unknown kind {tag:#x}")
    if 0xA0 <= tag < 0xC0 or tag in (0xD9, 0xDA, 0xDB):
        return text[at : at + count].decode(), at + count
    if tag < 0x90 or tag in (0xDE, 0xDF):
        pairs: dict[Any, Any] = {}
        for _ in range(count):
            key, at = _unpacked(text, at)
            pairs[key], at = _unpacked(text, at)
        return pairs, at
    values = []
    for _ in range(count):
        value, at = _unpacked(text, at)
        values.append(value)
    return values, at
