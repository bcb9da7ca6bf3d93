"""Functions of gcc on the bits of integers, as C that is put in line: compilers make an instruction of each.

What gcc leaves undefined, ``__builtin_clz(0)``, has some value here.
"""

from __future__ import annotations

_COUNT = """
  {type} counted = bits_of - ((bits_of >> 1) & {fives});
  counted = (counted & {threes}) + ((counted >> 2) & {threes});
  counted = (counted + (counted >> 4)) & {nibbles};
  return (int)((counted * {ones}) >> {shift});
"""
_MASKS = {
    "unsigned int": {
        "fives": "0x55555555u",
        "threes": "0x33333333u",
        "nibbles": "0x0f0f0f0fu",
        "ones": "0x01010101u",
        "shift": "24",
    },
    "unsigned long": {
        "fives": "0x5555555555555555ul",
        "threes": "0x3333333333333333ul",
        "nibbles": "0x0f0f0f0f0f0f0f0ful",
        "ones": "0x0101010101010101ul",
        "shift": "56",
    },
}
_SPREAD = "bits_of |= bits_of >> 1; bits_of |= bits_of >> 2; bits_of |= bits_of >> 4; bits_of |= bits_of >> 8; "
_SPREAD += "bits_of |= bits_of >> 16; "
_FURTHER = "bits_of |= bits_of >> 32; "


_BODIES = {
    "popcount": _COUNT,
    "parity": "return {count}(bits_of) & 1;",
    "clz": "{spread} return {count}(~bits_of);",
    "ctz": "return {count}((bits_of & (0 - bits_of)) - 1);",
    "ffs": "return bits_of == 0 ? 0 : {count}((bits_of & (0 - bits_of)) - 1) + 1;",
}


def builtin(name: str) -> str:
    """Return the definition of a function of gcc, which may call others of these; empty where it is none of them."""
    base = name.removeprefix("__builtin_")
    suffix = "ll" if base.endswith("ll") else "l" if base.endswith("l") else ""
    base = base.removesuffix(suffix)
    if base not in _BODIES or not name.startswith("__builtin_"):
        return ""
    type_ = "unsigned long" if suffix else "unsigned int"
    given = {"type": type_, "count": f"__builtin_popcount{suffix}", "spread": _SPREAD + _FURTHER * bool(suffix)}
    body = _BODIES[base].format(**given, **_MASKS[type_])
    return f"static int {name}({type_} bits_of) {{ {body} }}"
