"""Names in generated code: valid and free of collisions in C, C++, CUDA, LLVM IR and PTX, whatever a sketch calls them.

A kernel keeps its plain name where no language or library has that name already.  Inputs get a prefix that nothing
else in the generated code has, so they can be called as they like.
"""

from __future__ import annotations

import re

_KEYWORDS = """
alignas alignof and_eq and asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long
module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
volatile wchar_t while xor xor_eq linux unix i386 main std
"""
# Functions that compilers know without a header, or that device code has without one; and names of the CPU build.
_LIBRARY = """
abort abs acos acosh alloca asin asinh asprintf assert atan atan2 atanh atexit atof atoi atol atoll bcmp bcopy bsearch
bzero cabs cacos calloc carg casin catan cbrt ccos ceil cexp cimag clock clog conj copysign cos cosh cpow creal csin
csqrt ctan div drem erf erfc exit exp exp10 exp2 expm1 fabs fdim ffs finite floor fma fmax fmin fmod fprintf fputc fputs
fread free frexp fscanf fwrite gamma getenv hypot ilogb imaxabs index isalnum isalpha isascii isblank iscntrl isdigit
isfinite isgraph isinf islower isnan isnormal isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp ldiv lgamma
llabs lldiv llrint llround log log10 log1p log2 logb longjmp lrint lround malloc max memchr memcmp memcpy memmove
mempcpy memset min modf nan nearbyint nextafter nexttoward norm normcdf pow printf putchar puts qsort raise rand
realloc remainder remquo remove rename rhypot rindex rint round rsqrt saturate scalb scalbln scalbn scanf setjmp signal
signbit significand sin sincos sincospi sinf sinh sinpi snprintf sprintf sqrt srand sscanf stpcpy strcasecmp strcat
strchr strcmp strcpy strcspn strdup strfmon strlen strncasecmp strncat strncmp strncpy strpbrk strrchr strspn strstr
strtod strtol system tan tanh tgamma time toascii tolower toupper trap trunc vfprintf vfscanf vprintf vscanf vsnprintf
vsprintf vsscanf y0 y1 yn
blockDim blockIdx gridDim threadIdx warpSize dim3 uint3 clock64 metafork_cpu
"""
_TAKEN = frozenset((*_KEYWORDS.split(), *_LIBRARY.split()))


def kernel_name(name: str) -> str:
    """Return a name for functions: the sketch's own where it is an identifier that nothing has, else with a prefix."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    # Names with capitals only may be macros, those with leading underscores belong to compilers.
    taken = not re.fullmatch(r"[A-Za-z]\w*", word) or word in _TAKEN or word.rstrip("fl") in _TAKEN or word.isupper()
    return f"swizzle_{word.lstrip('_')}" if taken else word


def parameter_name(array: str) -> str:
    """Return the name of an input's parameter."""
    return f"in_{array}"
