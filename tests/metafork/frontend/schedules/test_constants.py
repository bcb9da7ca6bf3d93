"""Constants as odd as C allows and odder: a value that a C compiler gives too, or a diagnostic."""

import random
import subprocess

import pytest

from metafork.frontend.text.constants import constant, named_constant
from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.exact_constants import floating_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import NOWHERE
from tests.metafork.frontend.marked import assert_refused, diagnostics_of, thread

ODD = [
    *("0x1p2000", "1e400", "1e39f", "1e999999999f", "1e99999999999999999999", "0x1p99999999999999"),
    *("0x.p1", "0x1p", "1e", "1e+", "1e+f", ".", ".e1", "0x", "0xg", "1.5.2", "1_000", "1'000", "1w", "1.0df"),
    *("1.0i", "1i", "1j", "089", "0b102", "0b", "1uu", "1lul", "1f", "1.0lf", "1.0F16", "1.0L", "0x1p3L"),
    *("'ab'", "''", "'\\777'", "'\\xfff'", "'\\q'", "L'a'", "u8'a'", "'é'", "'\\u00e9'", "18446744073709551616u"),
    *("1" * 5000, "1" * 400 + ".0", "0x" + "f" * 5000, "0x" + "f" * 5000 + "p0", "9" * 5000 + "e-1"),
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:20])
def test_what_fits_no_type_is_a_diagnostic(text):
    assert {one.code for one in diagnostics_of(thread(f"a[i] = {text};"))} <= {"MF0010", "MF0314"}
    assert diagnostics_of(thread(f"a[i] = {text};"))


def test_what_is_too_large_is_called_so():
    (found,) = assert_refused(thread("a[i] = «0x1p128f»;"), "MF0314")
    assert found.message == "the constant `0x1p128f` is too large for `float`"
    (found,) = assert_refused(thread("a[i] = «" + "9" * 5000 + "»;"), "MF0314")
    assert found.message.endswith("is too large for every integer type")
    assert len(found.message) < 100


def test_the_same_constants_outside_of_a_schedule_do_not_matter():
    for text in ODD:
        if "'" not in text:
            found = diagnostics_of(thread("a[i] = n;", f"  double z = {text}; int d = {text} / n;\n"))
            assert {one.code for one in found} <= {"MF0010"}


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("1e-999999999f", ScalarType.FLOAT, 0.0),
        ("0x1p-99999999999", ScalarType.DOUBLE, 0.0),
        ("0x1.ffffffffffffffffffp0f", ScalarType.FLOAT, 2.0),
        ("0x1.000001p0f", ScalarType.FLOAT, 1.0),
        ("0x1.0000010000000001p0f", ScalarType.FLOAT, 1.0000001192092896),
        ("0." + "0" * 5000 + "1e5001", ScalarType.DOUBLE, 1.0),
        ("1.5" + "0" * 3000 + "1", ScalarType.FLOAT, 1.5),
        ("16777217." + "0" * 3000 + "1f", ScalarType.FLOAT, 16777218.0),
    ],
    ids=lambda value: str(value)[:20],
)
def test_values_are_rounded_once(text, type_, value):
    assert floating_value(text, type_) == value


def literal(rng):
    """Something that begins as a number of C does."""
    digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([0, 1, 2, 9, 18, 40])))
    more = "".join(rng.choice("0123456789") for _ in range(rng.choice([0, 1, 7, 30])))
    nibbles = "".join(rng.choice("0123456789abcdefABCDEF") for _ in range(rng.choice([0, 1, 5, 14, 20])))
    sign = rng.choice(["", "+", "-"])
    match rng.randrange(7):
        case 0:
            text = f"{digits}.{more}"
        case 1:
            text = f"{digits}.{more}{rng.choice('eE')}{sign}{rng.choice([0, 3, 37, 38, 45, 300, 308, 324, 999999])}"
        case 2:
            text = f"{rng.choice(['0x', '0X'])}{nibbles}.{nibbles[:3]}{rng.choice('pP')}{sign}{rng.randrange(1100)}"
        case 3:
            text = f"{digits}e{sign}{more}"
        case 4:
            text = f"{rng.choice(['0x', '0', '0b', ''])}{nibbles or digits}"
        case 5:
            text = f"'\\{rng.choice(['x', ''])}{rng.choice(['0', '7', '41', '101', 'ff', '377', '400', 'n', 'q'])}'"
        case _:
            text = f"{digits}{rng.choice(['p', 'e', '.', '..', 'x', 'u.'])}{more}"
    return text + rng.choice(["", "", "", "f", "F", "L", "u", "UL", "ll", "LLU", "lu", "i", "lf", "_"])


def test_random_constants_have_the_compilers_values(tmp_path):
    rng = random.Random(11)
    texts = dict.fromkeys(literal(rng) for _ in range(3000))
    values = {text: built for text in texts if (built := constant(text, NOWHERE)) is not None}
    assert len(values) > 500
    rows = []
    for text, built in values.items():
        if isinstance(built, ir.FloatConst):
            rows.append(f'  printf("%a %zu\\n", (double)({text}), sizeof({text}));')
        else:
            rows.append(f'  printf("%llu %zu\\n", (unsigned long long)({text}), sizeof({text}));')
    source = tmp_path / "constants.c"
    source.write_text("#include <stdio.h>\nint main(void) {\n" + "\n".join(rows) + "\n  return 0;\n}\n")
    subprocess.run(["gcc", "-std=gnu11", "-w", "-o", tmp_path / "constants", source], check=True)
    lines = subprocess.run([tmp_path / "constants"], capture_output=True, text=True, check=True).stdout.splitlines()
    for (text, built), line in zip(values.items(), lines, strict=True):
        value, size = line.split()
        assert int(size) == built.type.size, text
        if isinstance(built, ir.FloatConst):
            assert float.fromhex(value) == floating_value(text, built.type), text
        else:
            assert int(value) == built.value % 2**64, text


def test_constants_of_headers_have_the_compilers_types_and_values(tmp_path):
    built = {name: named_constant(name, NOWHERE) for name in CONSTANTS}
    types = ", ".join(f"{type_.spelling}: {number}" for number, type_ in enumerate(ScalarType) if not type_.small)
    rows = [
        f'  printf("%d %a %lld\\n", _Generic({name}, {types}), (double)({name}), '
        f"(long long)(_Generic({name}, float: 0, double: 0, default: {name})));"
        for name in built
    ]
    source = tmp_path / "constants.c"
    headers = ("float", "limits", "math", "stdbool", "stddef", "stdint", "stdio")
    includes = "".join(f"#include <{header}.h>\n" for header in headers)
    source.write_text(f"{includes}int main(void) {{\n" + "\n".join(rows) + "\n  return 0;\n}\n")
    subprocess.run(["gcc", "-std=gnu11", "-w", "-o", tmp_path / "constants", source], check=True)
    lines = subprocess.run([tmp_path / "constants"], capture_output=True, text=True, check=True).stdout.splitlines()
    for (name, value), line in zip(built.items(), lines, strict=True):
        type_, floating, integer = line.split()
        assert int(type_) == list(ScalarType).index(value.type), name
        if isinstance(value, ir.FloatConst):
            assert repr(floating_value(value.text, value.type)) == repr(float.fromhex(floating)), name
        else:
            assert integer_value(value, {}) == (int(integer) if value.type.signed else int(integer) % 2**64), name


def test_constants_of_headers_may_be_used():
    text = "INT_MIN LLONG_MIN ULLONG_MAX SCHAR_MIN CHAR_MAX FLT_RADIX DBL_MIN_EXP DBL_TRUE_MIN INT64_MIN SIZE_MAX"
    assert not diagnostics_of(thread(f"a[i] = {' + '.join(text.split())};"))


@pytest.mark.slow
def test_random_constants_in_schedules():
    rng = random.Random(12)
    for _ in range(20_000):
        diagnostics_of(thread(f"a[i] = {literal(rng)};"))
