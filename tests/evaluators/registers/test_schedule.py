"""The order that ``ptxas`` puts instructions in, and the registers that it wants."""

import pytest

from metafork.evaluators.registers.read_only import with_read_only_loads
from metafork.evaluators.registers.schedule import ALL_WARPS, FREE_MORE, arrangement
from tests.evaluators.registers.loop_over_blocks import ROLLED, code_of, loop_over_blocks
from tests.evaluators.registers.ptx_modules import code_of_body


@pytest.mark.parametrize("pipeline", ROLLED)
def test_a_small_counted_loop_wants_the_registers_of_four(pipeline):
    counted = arrangement(code_of(loop_over_blocks(), pipeline))
    by_threads = arrangement(code_of(loop_over_blocks("(int)blockDim.x"), pipeline))
    divided = arrangement(code_of(loop_over_blocks(value="a[k * n + p] / a[p]"), pipeline))
    assert by_threads.wanted < counted.wanted <= ALL_WARPS
    assert divided.wanted < counted.wanted
    assert (divided.slow, counted.slow) == (1, 0)


@pytest.mark.parametrize("pipeline", ROLLED)
def test_a_loop_with_a_condition_wants_the_registers_of_four(pipeline):
    def wanted(inside):
        return arrangement(
            code_of(
                "void k(int n, int s, int m, const float *a, float *b) {"
                " for (unsigned p = blockIdx.x; p < n; p += gridDim.x)"
                f" for (int k = 0; k < s; k++) if (p * s + k * m < n) {{ {inside} }} }}",
                pipeline,
            )
        ).wanted

    plain = wanted("b[p * s + k * m] = a[p * s + k * m] * 2.0f;")
    nested = wanted("if (a[p * s + k * m] > 0.0f) b[p * s + k * m] = a[p * s + k * m] * 2.0f;")
    divided = wanted("b[p * s + k * m] = 2.0f / a[p * s + k * m];")
    assert nested < plain
    assert divided < plain


def kernel_with_rows(rows, of="%r1"):
    """A loop over blocks that reads one element of each of so many rows, by default the same rows for all blocks."""
    places = "".join(
        f"	add.s32 \t%r{10 + k}, {of}, {k};\n	mul.wide.s32 \t%rd{10 + k}, %r{10 + k}, %r4;\n"
        f"	add.s64 \t%rd{40 + k}, %rd1, %rd{10 + k};\n	mul.wide.s32 \t%rd9, %r3, 4;\n"
        f"	add.s64 \t%rd{70 + k}, %rd{40 + k}, %rd9;\n	ld.global.b32 \t%r{100 + k}, [%rd{70 + k}];\n"
        f"	st.global.b32 \t[%rd{70 + k}], %r2;\n"
        for k in range(rows)
    )
    return code_of_body(
        "	ld.param.b64 \t%rd1, [k_param_0];\n	ld.param.b32 \t%r4, [k_param_1];\n	mov.u32 \t%r1, %tid.y;\n"
        "	mov.u32 \t%r2, %tid.x;\n	mov.u32 \t%r3, %ctaid.x;\n"
        f"$LOOP:\n{places}	mov.u32 \t%r5, %nctaid.x;\n	add.s32 \t%r3, %r3, %r5;\n"
        "	setp.lt.u32 \t%p1, %r3, %r4;\n	@%p1 bra \t$LOOP;\n"
    )


def test_what_leaves_a_loop_wants_registers_while_all_warps_have_them():
    def wanted(rows, of):
        return arrangement(kernel_with_rows(rows, of)).wanted

    block = "%r3"
    # Each row's place takes two registers all through the loop, where it is the same for all blocks.
    assert wanted(4, block) + 4 <= wanted(4, "%r1") < ALL_WARPS
    # Twenty rows would take forty: they are computed where they are used.
    assert wanted(20, "%r1") == wanted(20, block) <= ALL_WARPS


def chain_of_sums(count):
    """Loads that are summed one after the other."""
    loads = "".join(f"\tld.global.nc.b32 \t%r{k + 1}, [%rd1+{4 * k}];\n" for k in range(count))
    sums = "".join(f"\tadd.rn.f32 \t%r{100 + k}, %r{99 + k if k > 1 else 1}, %r{k + 1};\n" for k in range(1, count))
    address = "\tld.param.b64 \t%rd0, [k_param_0];\n\tmov.u32 \t%r0, %tid.x;\n\tmul.wide.u32 \t%rd2, %r0, 4;\n"
    address += "\tadd.s64 \t%rd1, %rd0, %rd2;\n"
    return code_of_body(address + loads + sums + f"\tst.global.b32 \t[%rd1], %r{98 + count};\n")


def test_loads_come_first_while_registers_last():
    few, many = arrangement(chain_of_sums(8)), arrangement(chain_of_sums(60))
    # All eight values and the address at once.
    assert few.wanted == 8 + 2 + FREE_MORE
    assert few.loads == 8
    # Sixty values do not have to live at once: an order within the registers of all warps is there.
    assert many.wanted == ALL_WARPS


def test_what_has_to_live_at_once_is_wanted():
    loads = "".join(f"\tld.global.nc.b32 \t%r{k}, [%rd1+{4 * k}];\n" for k in range(1, 61))
    # Each value is stored only after a barrier that follows all loads.
    stores = "".join(f"\tst.global.b32 \t[%rd1+{4 * k}], %r{k};\n" for k in range(1, 61))
    address = "\tmov.u32 \t%r0, %tid.x;\n\tmul.wide.u32 \t%rd1, %r0, 4;\n"
    assert arrangement(code_of_body(address + loads + "\tbar.sync \t0;\n" + stores)).wanted >= 62


def loads(count, first=0):
    return "".join(f"\tld.global.nc.b32 \t%r{k}, [%rd1+{4 * k}];\n" for k in range(first, first + count))


def stores(count, first=0):
    return "".join(f"\tst.global.b32 \t[%rd1+{4 * k}], %r{k};\n" for k in range(first, first + count))


def blocks_in_turn(*blocks):
    """A kernel with these blocks, after each of which it may end."""
    ends = "\tsetp.lt.u32 \t%p1, %r299, {0};\n\t@%p1 bra \t$END;\n"
    text = "".join(block + ends.format(place) for place, block in enumerate(blocks))
    return code_of_body(f"\tmov.u32 \t%r299, %tid.x;\n\tmul.wide.u32 \t%rd1, %r299, 4;\n{text}$END:\n")


@pytest.mark.parametrize("across", [16, 20, 28])
def test_a_division_takes_its_temporaries_beside_what_lives_across_it(across):
    wait = "\tbar.sync \t0;\n"
    division = (
        "\tld.global.nc.b64 \t%rd9, [%rd1];\n\tdiv.rn.f64 \t%rd10, %rd9, %rd9;\n\tst.global.b64 \t[%rd1], %rd10;\n"
    )
    blocks = [loads(across) + wait, division, wait + stores(across)]
    wanted = arrangement(blocks_in_turn(*blocks)).wanted
    # Besides the values: two registers each for the address, the operand and the result, one for the index.
    assert wanted >= across + 14 + 4
    for other in range(across, across + 20):
        others = arrangement(blocks_in_turn(loads(other, 100) + wait + stores(other, 100))).wanted
        both = arrangement(blocks_in_turn(*blocks, loads(other, 100) + wait + stores(other, 100))).wanted
        assert max(wanted, others) <= both <= max(wanted, others) + 1, other


def test_an_index_made_of_a_float_is_no_part_of_the_address():
    def wanted(conversion):
        names = range(20)
        before = "".join(f"\tcvt.{conversion} \t%rd{10 + k}, %r{k};\n" for k in names)
        after = "".join(
            f"\tadd.s64 \t%rd{40 + k}, %rd1, %rd{10 + k};\n\tst.global.b32 \t[%rd{40 + k}], %r299;\n" for k in names
        )
        return arrangement(blocks_in_turn(f"{loads(20)}{before}\tbar.sync \t0;\n{after}")).wanted

    # Extended integers are added as they are; a converted value lives in two registers.
    assert wanted("s64.s32") + 15 <= wanted("rzi.s64.f32")


def test_constant_offsets_and_scaled_indices_take_nothing():
    address = "\tld.param.b64 \t%rd0, [k_param_0];\n\tmov.u32 \t%r0, %tid.x;\n"
    address += "\tmul.wide.u32 \t%rd2, %r0, 4;\n\tadd.s64 \t%rd1, %rd0, %rd2;\n"
    access = "\tld.global.nc.b32 \t%r1, [%rd{0}];\n\tst.global.b32 \t[%rd{0}+4], %r1;\n"
    plain = arrangement(code_of_body(address + access.format(1))).wanted
    offset = arrangement(code_of_body(address + "\tadd.s64 \t%rd3, %rd1, 64;\n" + access.format(3))).wanted
    assert plain == offset == 3 + FREE_MORE


def test_arrays_that_are_only_read_are_read_through_the_cache():
    arguments = ((1, 0), (2, 1), (5, 1))
    text = "".join(f"\tld.param.b64 \t%rd{name}, [k_param_{place}];\n" for name, place in arguments)
    text += "\tadd.s64 \t%rd3, %rd1, 8;\n\tadd.s64 \t%rd4, %rd2, 8;\n"
    text += "\tld.global.b32 \t%r1, [%rd3];\n\tld.global.b32 \t%r2, [%rd5];\n\tst.global.b32 \t[%rd4], %r1;\n"
    loads = [one for one in with_read_only_loads(code_of_body(text)).instructions() if one.form.loads]
    assert [one.cached for one in loads] == [True, False]
