"""Names that OpenCL C text must not use for variables of the program, and others in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = """\
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
bool true false kernel global local constant private generic read_only write_only read_write uniform pipe half
quad complex imaginary uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t queue_t
ndrange_t clk_event_t reserve_id_t cl_mem_fence_flags memory_scope memory_order class namespace template
typename using new delete this operator public protected virtual friend try catch throw main unroll pragma
defined"""
# Functions and constants: implementations may have them as macros.
_FUNCTIONS = """\
acos acosh acospi add_sat abs abs_diff all any as asin asinh asinpi async_work_group_copy atan atan2 atan2pi
atanh atanpi barrier bitselect cbrt ceil clamp clz copysign cos cosh cospi cross degrees distance dot
enqueue_kernel erf erfc exp exp10 exp2 expm1 fabs fast_distance fast_length fast_normalize fdim floor fma fmax
fmin fmod fract frexp get_global_id get_global_size get_group_id get_local_id get_local_size get_num_groups
get_work_dim get_global_offset hadd hypot ilogb isequal isfinite isgreater isgreaterequal isinf isless
islessequal islessgreater isnan isnormal isnotequal isordered isunordered ldexp length lgamma lgamma_r log
log10 log1p log2 logb mad mad24 mad_hi mad_sat max maxmag mem_fence min minmag mix modf mul24 mul_hi nan
nextafter normalize popcount pow pown powr prefetch printf radians read_mem_fence remainder remquo rhadd rint
rootn rotate round rsqrt select shuffle shuffle2 sign signbit sin sincos sinh sinpi smoothstep sqrt step
sub_sat tan tanh tanpi tgamma trunc upsample vec_step vload vstore wait_group_events write_mem_fence NULL NAN
INFINITY MAXFLOAT HUGE_VAL HUGE_VALF CHAR_BIT linux unix i386"""
_RESERVED = frozenset(f"{_WORDS} {_FUNCTIONS}".split())
_RESERVED_FORM = re.compile(
    r"_.*|metafork_.*|METAFORK_.*|(u?(char|short|int|long)|float|double|half|bool|quad)\d+(x\d+)?"
    r"|(as|atom|atomic|async|convert|create|enqueue|get|image|native|ndrange|read|sub_group|vload|vstore|work_group|write)_.*"
    r"|image\dd_.*|(CLK|CL|FP|M|FLT|DBL|HALF|cl|amd|intel)_.*|[A-Z]+_(MAX|MIN)"
)


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Map each name that OpenCL C or the text itself may use to one that is free."""
    names = set(names)
    result: dict[str, str] = {}
    for name in sorted(filter(_is_reserved, names)):
        free = f"v_{name.lstrip('_')}_"
        while free in names or free in result.values():
            free += "_"
        result[name] = free
    return result


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or _RESERVED_FORM.fullmatch(name) is not None
