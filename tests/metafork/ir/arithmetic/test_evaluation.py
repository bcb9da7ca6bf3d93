"""C's integer arithmetic against a C compiler, and what it leaves undefined."""

import subprocess
from itertools import product

import pytest

from metafork.frontend.text.preprocessing.directive_conditions import condition_holds
from metafork.ir.arithmetic.evaluation import NoValueError, converted, operation
from metafork.ir.arithmetic.types import ScalarType

TYPES = (ScalarType.INT, ScalarType.UNSIGNED_INT, ScalarType.LONG, ScalarType.UNSIGNED_LONG_LONG)
OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")
SAMPLES = (0, 1, 2, 5, 31, 33, 63, -1, -7, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63))


def values(type_):
    return sorted({converted(value, type_) for value in SAMPLES})


def literal(value, type_):
    return f"({type_.spelling})0x{value % (1 << 64):x}ull"


def test_operations_are_those_of_a_compiler(tmp_path):
    asked, expected = [], []
    for type_ in TYPES:
        for op, left, right in product(OPERATORS, values(type_), values(type_)):
            try:
                expected.append(operation(op, left, right, type_))
            except NoValueError:
                continue
            if op == "<<" and left < 0:
                # A value here, as compilers have it; C itself leaves it undefined.
                expected.pop()
                continue
            asked.append(f"(long long)({literal(left, type_)} {op} {literal(right, type_)})")
    source = tmp_path / "asked.c"
    source.write_text(
        "#include <stdio.h>\nstatic const long long results[] = {\n"
        + ",\n".join(asked)
        + "\n};\nint main(void) {\n  for (unsigned i = 0; i < sizeof results / sizeof *results; i++)\n"
        + '    printf("%lld\\n", results[i]);\n  return 0;\n}\n'
    )
    # Constant expressions: what C leaves undefined in them is an error.
    subprocess.run(["gcc", "-w", "-o", tmp_path / "asked", source], check=True)
    printed = subprocess.run([tmp_path / "asked"], check=True, capture_output=True, text=True).stdout.split()
    assert len(expected) > 4000
    assert [int(one) for one in printed] == [converted(value, ScalarType.LONG_LONG) for value in expected]


@pytest.mark.parametrize(
    ("op", "left", "right", "type_"),
    [
        ("+", 2**31 - 1, 1, ScalarType.INT),
        ("*", -(2**31), -1, ScalarType.INT),
        ("/", -(2**31), -1, ScalarType.INT),
        ("%", -(2**63), -1, ScalarType.LONG_LONG),
        ("/", 1, 0, ScalarType.UNSIGNED_INT),
        ("%", 1, 0, ScalarType.LONG),
        ("<<", 1, 32, ScalarType.UNSIGNED_INT),
        ("<<", 1, 31, ScalarType.INT),
        (">>", 1, -1, ScalarType.LONG),
        ("+", 1, 1, ScalarType.FLOAT),
    ],
)
def test_what_c_leaves_undefined_has_no_value(op, left, right, type_):
    with pytest.raises(NoValueError):
        operation(op, left, right, type_)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("1 << 62 > 0", True),
        ("(-1 >> 63) == -1", True),
        ("1 | 4 ^ 6 & 3", True),
        ("2 + 3 * 4 - 1 != 13", False),
        # What has no value in 64 bits decides nothing.
        ("1 << 63", None),
        ("1 << 64", None),
        ("9223372036854775807 + 1", None),
        ("1 / 0", None),
        ("1 % 0 || 1", True),
    ],
)
def test_conditions_of_directives_have_the_same_arithmetic(condition, holds):
    assert condition_holds("if", condition, {}) is holds
