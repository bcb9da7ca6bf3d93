"""What the outputs of a file are named after."""

from __future__ import annotations

import re
from pathlib import PurePath

from metafork.frontend.host.known_names import C_WORDS

_NAMES = """\
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbit
stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
aio cpio dirent dlfcn endian fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen libintl monetary mqueue ndbm netdb
nl_types poll pthread pwd regex sched search semaphore spawn strings stropts syslog tar termios trace ucontext ulimit
unistd utime utmpx wordexp
alloca byteswap execinfo features getopt malloc memory omp values
cuda cuda_fp16 cuda_runtime cuda_runtime_api device_types driver_types math_constants nvrtc vector_functions
vector_types
metafork metafork_runtime
"""
_HEADERS = frozenset(_NAMES.split())
"""Headers of C, of POSIX, those that the usual libraries' include, CUDA's, and files of every output."""


def unit_name(source_name: str) -> str:
    """Return the C identifier that outputs are named after: the stem of the file's name.

    It is mended where it is no identifier, and where the generated header would stand before the system's of that name.
    """
    stem = re.sub(r"[^A-Za-z0-9_]", "_", PurePath(source_name).name.removesuffix(".mf")).strip("_")
    if not stem:
        return "program"
    taken = stem[0].isdigit() or stem in C_WORDS or stem.lower() in _HEADERS
    return f"program_{stem}" if taken else stem
