"""Operands of one token: names, plain addresses and literals, of integers and of floating-point numbers."""

from __future__ import annotations

import struct

from metafork.ptx.text.syntax import Address, Immediate, Name, Operand


class PlainOperands(dict[str, Operand]):
    """The operands of instructions that are one token, each read once."""

    def __missing__(self, text: str) -> Operand:
        """Read a name, a number or an address."""
        operand: Operand
        if text[0] == "[":
            base, _, offset = text[1:-1].partition("+")
            operand = Address(Name(base), int(offset or 0))
        elif text[0] in "-0123456789":
            operand = Immediate(text)
        else:
            name, _, component = text.partition(".")
            operand = Name(name, component or None)
        self[text] = operand
        return operand


def integer_literal(text: str) -> int:
    """Return the value of an integer literal: decimal, ``0x``, ``0b``, octal with a leading 0, ``U`` suffix, sign.

    Raises:
        ValueError: the text is no integer literal (a float, for one).
    """
    body = text.removeprefix("-").removesuffix("U")
    if body[:2] in ("0x", "0X", "0b", "0B"):
        value = int(body, 0)
    elif len(body) > 1 and body[0] == "0":
        value = int(body, 8)
    else:
        value = int(body)
    return -value if text.startswith("-") else value


def float_bits(text: str, width: int) -> int | None:
    """Return the bits of a floating literal, ``None`` where the text is none."""
    negative, body = text.startswith("-"), text.removeprefix("-")
    if body[:2] in ("0f", "0F") and len(body) == 10:
        bits, size = int(body[2:], 16), 32
    elif body[:2] in ("0d", "0D") and len(body) == 18:
        bits, size = int(body[2:], 16), 64
    elif "." in body or ("e" in body.lower() and not body.lower().startswith("0x")):
        size = 64 if width == 64 else 32
        bits = int.from_bytes(struct.pack("<d" if size == 64 else "<f", float(body)), "little")
    else:
        return None
    if negative:
        bits ^= 1 << (size - 1)
    if size == 32 and width == 64:
        return int.from_bytes(struct.pack("<d", struct.unpack("<f", bits.to_bytes(4, "little"))[0]), "little")
    if size == 64 and width == 32:
        return int.from_bytes(struct.pack("<f", struct.unpack("<d", bits.to_bytes(8, "little"))[0]), "little")
    return bits
