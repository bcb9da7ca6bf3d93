"""Names that host code may use without any effect that its text does not show.

A name is known when it is in scope, when the file or its own headers declare it, or when it is one that C and POSIX
give to a function, an object or a constant.  Any other name may be a macro, of a header that is not read or of a
command line, and may stand for anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from metafork.frontend.text.tokens import Token, TokenKind
from metafork.frontend.text.vocabulary import (
    CONSTANTS,
    HEADER_TYPES,
    MATH_FUNCTIONS,
    OTHER_TYPES,
    PRINTING_FUNCTIONS,
    SCANNING_FUNCTIONS,
)

C_WORDS = frozenset(
    {
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    }
)
"""Keywords of C99 that begin with a letter."""

_OTHER_WORDS = frozenset(
    {
        *("_Bool", "_Complex", "_Alignas", "_Alignof", "_Atomic", "_Generic", "_Noreturn", "_Static_assert"),
        *("_Thread_local", "_Pragma", "asm", "__asm", "__asm__", "typeof", "__typeof__", "__typeof", "__auto_type"),
        *("__attribute__", "__attribute", "__extension__", "__inline", "__inline__", "__restrict", "__restrict__"),
        *("__volatile__", "__volatile", "__const", "__const__", "__signed__", "__func__", "__FILE__", "__LINE__"),
        *(
            "__DATE__",
            "__TIME__",
            "__FUNCTION__",
            "__PRETTY_FUNCTION__",
            "meta_schedule",
            "meta_for",
            *("meta_atomic", "meta_reduction", "meta_grid", "meta_block", "meta_min_blocks", "meta_static"),
            "cache",
            "bool",
        ),
    }
)

# Functions, objects and macros of C and POSIX (and of OpenMP's clock): their effects are those of any call.
_LIBRARY = """\
abort abs access aligned_alloc asctime assert atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc chdir
clearerr clock clock_getres clock_gettime close closedir ctime difftime div exit fclose fdopen feof ferror fflush
fgetc fgets fileno fopen fprintf fputc fputs fread free freopen fscanf fseek fsetpos ftell fwrite getc getchar
getcwd getenv getopt getpid gettimeofday gmtime index ioctl isalnum isalpha isblank iscntrl isdigit isgraph islower
isprint ispunct isspace isupper isxdigit kill labs ldiv llabs localtime lseek malloc memchr memcmp memcpy memmove
memset mkdir mktime mmap munmap nanosleep open perror popen posix_memalign pclose printf putc putchar puts qsort
raise rand rand_r random read realloc remove rename rewind rindex scanf setbuf setenv setlocale setvbuf signal sleep
snprintf sprintf srand srandom sscanf strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror
strftime strlen strncasecmp strncat strncmp strncpy strnlen strpbrk strrchr strspn strstr strtod strtof strtok
strtok_r strtol strtold strtoll strtoul strtoull system time tmpfile tolower toupper ungetc unlink unsetenv usleep
vfprintf vprintf vsnprintf vsprintf write drand48 srand48 lrand48 mrand48 erand48 sysconf getline asprintf
omp_get_wtime omp_get_num_threads omp_get_thread_num omp_get_max_threads omp_set_num_threads
NULL EOF BUFSIZ EXIT_SUCCESS EXIT_FAILURE RAND_MAX CLOCKS_PER_SEC SEEK_SET SEEK_CUR SEEK_END stdin stdout stderr
errno environ INFINITY NAN HUGE_VAL HUGE_VALF CLOCK_MONOTONIC CLOCK_REALTIME CLOCK_PROCESS_CPUTIME_ID
CHAR_MIN CHAR_MAX SCHAR_MIN SHRT_MIN INT_MIN LONG_MIN LLONG_MIN LLONG_MAX ULONG_MAX ULLONG_MAX SIZE_MAX
INT8_MIN INT8_MAX INT16_MIN INT16_MAX INT32_MIN INT64_MIN UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX
INTPTR_MAX PTRDIFF_MAX FLT_DIG DBL_DIG FLT_RADIX LDBL_MAX LDBL_MIN LDBL_EPSILON LC_ALL LC_NUMERIC PATH_MAX
isnan isinf isfinite isnormal signbit fpclassify offsetof va_start va_end va_arg va_copy setjmp longjmp
metafork_keep metafork_drop metafork_extent
"""

_HARMLESS = frozenset({*MATH_FUNCTIONS, *PRINTING_FUNCTIONS})
_SILENT = frozenset(
    {
        *("calloc", "srand", "srandom", "srand48", "time", "gettimeofday", "clock_gettime"),
        *("malloc", "clock", "rand", "random", "drand48", "lrand48", "omp_get_wtime", "isnan", "isinf", "isfinite"),
        *("isnormal", "signbit", "tolower", "toupper", "isalpha", "isdigit", "isspace"),
    }
)
"""Functions that touch nothing which has a name in a program, but what they get the address of."""
_CERTAIN = frozenset({*C_WORDS, *_OTHER_WORDS, *HEADER_TYPES, *OTHER_TYPES})
OF_HEADERS = frozenset({*_LIBRARY.split(), *_HARMLESS, *SCANNING_FUNCTIONS, *CONSTANTS})
"""Names of C and POSIX that mean what they mean there."""


class KnownNames(Struct, frozen=True):
    """What is known besides the variables in scope.

    ``declared`` are the functions and types of the file and its headers.  Where an own header could not be read, it may
    define macros by the names of the library, so those are not ``trusted`` then.
    """

    declared: frozenset[str] = frozenset()
    trusted: bool = True

    def knows(self, name: str) -> bool:
        """Return whether a name that is no variable in scope is one whose meaning is known."""
        return name in _CERTAIN or name in self.declared or (self.trusted and name in OF_HEADERS)

    def harmless(self, name: str) -> bool:
        """Return whether a call of a function, which nothing in scope hides, leaves all variables as they are."""
        return self.trusted and name in _HARMLESS

    def silent(self, name: str) -> bool:
        """Return whether a function of C touches no memory but its own."""
        return self.trusted and name in _SILENT

    def scans(self, name: str) -> bool:
        """Return whether a function writes through its arguments only, and keeps none of them."""
        return self.trusted and name in SCANNING_FUNCTIONS

    def first_unknown(self, tokens: Sequence[Token], scope: Collection[str]) -> Token | None:
        """Return the first token of a text that nobody understands and that may be a macro."""
        for before, token in zip((None, *tokens), tokens, strict=False):
            if token.unknown or token.fault:
                return token
            if token.kind is not TokenKind.NAME or (before is not None and before.text in _BEFORE_OTHER_NAMES):
                continue
            if token.text not in scope and not self.knows(token.text):
                return token
        return None


_BEFORE_OTHER_NAMES = frozenset({".", "->", "struct", "union", "enum", "goto"})
"""What stands before names of members, of tags and of labels."""
