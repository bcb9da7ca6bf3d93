"""``half`` and ``bfloat16`` in memory: read as ``float``, rounded to nearest even when stored, with the same bits."""

import numpy as np
import pytest

import metafork
from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.comprehensive.verification import Options, verify
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.half_programs import CASES, CONVERSIONS, FORMS, PRODUCT

OPTIONS = Options(points=4, jobs=1, dataflow_seconds=0, optimization="-O0")


def program(text):
    return parse(Source("half.mf", text)).schedules[0].program


def in_block(body, arguments="int n, int B, half *x"):
    return f"void f({arguments}) {{ meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n; i++) {{ {body} }} }} }}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(1)
def test_every_leaf_computes_the_bits_of_the_serial_program(name):
    text, _ = CASES[name]
    found = verify(text, strategies=("granularity", "caching"), options=OPTIONS, machine="all")
    assert found.failures == []
    assert all(row.points for row in found.rows)


def floats():
    """Numbers of every exponent, those between two halves and bfloat16s, and their neighbours."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (halves[1:] + halves[:-1]) / np.float32(2)
    wide = (np.arange(0x7F80, dtype=np.uint32) << np.uint32(16) | np.uint32(0x8000)).view(np.float32)
    ends = np.array([0, 65519.996, 65520, 3.4e38, np.inf, np.nan, 1e-45, 2**-25, 1.5 * 2**-25], np.float32)
    near = [np.nextafter(one, np.float32(way)) for one in (between, wide) for way in (0, np.inf)]
    positive = np.concatenate([halves, between, wide, ends, *near])
    return np.concatenate([positive, -positive])


def as_bfloat16(values):
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded.astype(np.uint16))


def test_conversions_are_those_of_numpy():
    call = metafork.load(CONVERSIONS, cpu=True).conversions
    v = floats()
    n = len(v)
    bits = np.resize(np.arange(65536, dtype=np.uint16), n)
    x, y = bits.view(np.float16), bits
    from_half, from_bfloat16 = np.zeros(n, np.float32), np.zeros(n, np.float32)
    to_half, to_bfloat16 = np.zeros(n, np.float16), np.zeros(n, np.uint16)
    call(n, 128, x, y, from_half, from_bfloat16, v, to_half, to_bfloat16)
    none = np.isnan(x)
    assert np.array_equal(from_half[~none], x[~none].astype(np.float32))
    assert np.isnan(from_half[none]).all()
    assert np.array_equal(from_bfloat16.view(np.uint32), bits.astype(np.uint32) << np.uint32(16))
    with np.errstate(over="ignore"):
        wanted = np.where(np.isnan(v), np.uint16(0x7FFF), v.astype(np.float16).view(np.uint16))
    assert np.array_equal(to_half.view(np.uint16), wanted)
    assert np.array_equal(to_bfloat16, as_bfloat16(v))


def test_values_are_converted_where_they_are_read_and_stored():
    text = in_block("half h = x[i]; x[i] = 2 * h + x[i];")
    x = np.arange(100).astype(np.float16) / np.float16(7)
    wanted = (np.float32(2) * x.astype(np.float32) + x.astype(np.float32)).astype(np.float16)
    metafork.load(text, cpu=True).f(n=100, B=32, x=x)
    assert np.array_equal(x, wanted)


def test_an_array_of_python_has_the_type():
    call = metafork.load(CONVERSIONS, cpu=True).conversions
    arrays = [np.zeros(4, np.float32) for _ in range(7)]
    with pytest.raises(TypeError, match=r"x is an array of float32; .* takes float16"):
        call(4, 4, *arrays)


def test_an_element_takes_two_bytes_of_shared_memory():
    result = optimize(PRODUCT, counters=("shared_memory",), strategies=("caching",), order="paper")
    text = rendered_files(result)["input.cu"]
    assert "METAFORK_SHARED_ARRAY(unsigned short, shared_a, metafork_shared, 0LL, 16LL)" in text
    assert "METAFORK_SHARED_ARRAY(unsigned short, shared_b, metafork_shared, 32LL, 16LL)" in text


def test_a_copy_moves_bits():
    body = program(in_block("y[i] = x[i];", "int n, int B, const half *x, half *y")).body
    stores = [
        one for one in ir.walk_statements(body) if isinstance(one, ir.Assign) and isinstance(one.target, ir.Element)
    ]
    assert [type(one.value) for one in stores] == [ir.Element]


@pytest.mark.parametrize("text", [FORMS, PRODUCT, CONVERSIONS])
def test_a_printed_program_reads_back(text):
    first = program(text)
    assert program(metafork_text(first)).body == first.body


NAMES = {
    "a variable": "int n, int B, float *x, float half",
    "a size": "int half, int B, float *x",
    "a local": "int n, int B, float *x",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_type_stays_a_name(name):
    body = {
        "a variable": "x[i] = half * x[i];",
        "a size": "x[i] = half;",
        "a local": "float half = x[i] / 2; x[i] = half;",
    }
    text = in_block(body[name], NAMES[name])
    if name == "a size":
        text = text.replace("i < n", "i < half")
    assert {one.element for one in program(text).arrays} == {ScalarType.FLOAT}


def test_a_type_of_the_file_is_its_own():
    plain = program("typedef unsigned short half;\n" + in_block("x[i] = x[i] + 1;"))
    assert not any(isinstance(part, ir.Call) for part in ir.parts_of(plain.body))
    own = program("typedef _Float16 number;\n" + in_block("x[i] = x[i] + 1;").replace("half", "number"))
    assert any(isinstance(part, ir.Call) for part in ir.parts_of(own.body))


@pytest.mark.parametrize("name", ["half", "__half", "_Float16", "__nv_bfloat16", "bfloat16"])
def test_the_host_knows_the_type_and_the_header_its_bits(name):
    files = rendered_files(optimize(in_block("x[i] *= 2;").replace("half", name), strategies=()))
    assert f"#define {name} metafork_" in files["input_host.c"]
    assert "unsigned short" in files["input.h"]
    assert name not in files["input.h"]


REFUSED = {
    "a number alone": (in_block("x[i] = x[i] * a;", "int n, int B, half *x, half a"), "MF0216", "`float a`"),
    "an atomic sum": (in_block("meta_atomic x[0] += 1;"), "MF0224", "an array of `float`"),
    "a reduction": (
        "void f(int n, int B, half *x, half *s) { meta_schedule meta_block(B) { meta_reduction(+: s) "
        "meta_for (int i = 0; i < n; i++) *s += x[i]; } }",
        "MF0225",
        "in a `float`",
    ),
    "two in one word": (in_block("x[i] = x[i];", "int n, int B, half2 *x"), "MF0216", "`half *x`"),
    "an index": (in_block("x[i] = x[x[0]];"), "MF0303", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_write(name):
    text, code, said = REFUSED[name]
    with pytest.raises(DiagnosticsError) as found:
        parse(Source("half.mf", text), reassociate=True)
    assert {one.code for one in found.value.diagnostics} == {code}
    assert any(said in (one.way_out or "") for one in found.value.diagnostics)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("y[i] = __half2float(x[i]) * 3; x[i] = __float2half(y[i]);", "y[i] = (float)x[i] * 3; x[i] = (half)y[i];"),
        ("z[i] = __float2bfloat16_rn(__bfloat162float(z[i]));", "z[i] = (bfloat16)(float)z[i];"),
    ],
)
def test_conversions_of_cuda_are_casts(written, plain):
    given = "int n, int B, half x[n], float y[n], bfloat16 z[n]"
    assert program(in_block(written, given)).body == program(in_block(plain, given)).body
