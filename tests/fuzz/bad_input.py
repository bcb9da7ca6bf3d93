"""Inputs that are mostly wrong, each a function of its number alone, and a process that tries a run of them.

``python -m tests.fuzz.bad_input FIRST COUNT [optimize]`` prints one JSON object a line for each input that gave
anything but success or diagnostics, and a last one with what happened how often.  It gives itself 1 GB of memory, and
each input 20 s of a fast machine's processor time (of which everything takes up to twice as much on a busy one).
"""

import json
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.processor_time import slowness

GIGABYTE = 1 << 30
SECONDS = 20
# By name, so that a new example does not change what a number means.
NAMES = ("blur", "center", "heat3d", "jacobi1d", "jacobi2d", "matadd", "matmul", "matvec", "smooth", "transpose")
EXAMPLES = [Path(__file__).parents[2] / "examples" / f"{name}.mf" for name in NAMES]

VOCABULARY = """
meta_schedule meta_for cache for if else while do int float double void char unsigned const return break continue goto
switch case struct static sizeof assert ( ) [ ] { } ; , = + - * / % & | ^ ~ ! < > ? : == <= >= != && || << >> ++ -- +=
*= -> . ... # ## \\ ' " i j k n N B s a b x 0 1 2 -1 1.5f 0x7fffffff 9223372036854775807 99999999999999999999 1e400
'c' "s" /* */ // \x00 \x7f é ☃
"""
PHRASES = [
    *("\n", "\r\n", "\t", "\f", "\n#define n 3\n", "\n#define M(x) x + M\n", "M(1)", "\n#if 0\n", "\n#else\n"),
    *("\n#endif\n", "\n#include <math.h>\n", "meta_for (int i = 0; i < n; i++)", "for (int k = 0; k < s; k++)"),
    *("a[i] = 1;", "a[i * B + j]", "N / 2", "i % 2"),
]
PIECES = [word.encode() for word in (*VOCABULARY.split(), *PHRASES)]
BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xfe\xff", b"\xef\xbb\xbf", b"\x80"]


def bad_input(number):
    """Return the bytes of input ``number``."""
    random = Random(number)
    kind = random.choices(
        (mutated, wrong_word, soup, truncated, no_text, nested, long_line, spliced),
        weights=(35, 25, 10, 10, 4, 5, 1, 10),
    )[0]
    return kind(random)


def example(random):
    return random.choice(EXAMPLES).read_bytes()


def tokens(data):
    """Split text into words, numbers, white space and single signs."""
    parts, word = [], b""
    for byte in data:
        one = bytes([byte])
        if one.isalnum() or one == b"_":
            word += one
            continue
        if word:
            parts.append(word)
            word = b""
        parts.append(one)
    return [*parts, word] if word else parts


def mutated(random):
    parts = tokens(example(random))
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        solid = [place for place, part in enumerate(parts) if not part.isspace()]
        here, there = random.choice(solid), random.choice(solid)
        match random.randrange(7):
            case 0:
                del parts[here]
            case 1:
                parts[here] = random.choice(PIECES)
            case 2:
                parts.insert(here, b" " + random.choice(PIECES) + b" ")
            case 3:
                parts[here], parts[there] = parts[there], parts[here]
            case 4:
                parts[here] = parts[there]
            case 5:
                first, last = min(here, there), min(max(here, there), here + 40)
                parts[here:here] = parts[first:last]
            case 6:
                del parts[here : here + random.randrange(1, 12)]
    return b"".join(parts)


def wrong_word(random):
    """Put names, numbers and operators in the places of others: most of these parse, and mean something else."""
    parts = tokens(example(random))
    for _ in range(random.choice((1, 1, 2, 3))):
        sort = random.choice((bytes.isdigit, bytes.isalpha, lambda part: part in b"+-*/%<>" and part))
        places = [place for place, part in enumerate(parts) if sort(part)]
        others = [b"0", b"1", b"2", b"7", b"2147483647", b"-1"] if sort is bytes.isdigit else []
        parts[random.choice(places)] = random.choice([*others, *(parts[place] for place in places)])
    return b"".join(parts)


def soup(random):
    body = b" ".join(random.choices(PIECES, k=random.choice((3, 10, 40, 200))))
    if random.random() < 0.5:
        body = b"void f(int n, int s, int B, int a[n]) { meta_schedule {" + body + b"} }"
    return body


def truncated(random):
    data = example(random)
    cut = random.randrange(len(data))
    return data[:cut] if random.random() < 0.7 else data[cut:]


def no_text(random):
    data = example(random) if random.random() < 0.8 else random.randbytes(random.randrange(2000))
    for _ in range(random.choice((1, 1, 4))):
        place = random.randrange(len(data) + 1)
        data = data[:place] + random.choice(BYTES) + data[place:]
    return data.decode().encode("utf-16") if random.random() < 0.1 and is_text(data) else data


def is_text(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def nested(random):
    depth = random.choice((30, 200, 2000, 20000))
    opening, closing = random.choice(
        (
            (b"(", b")"),
            (b"{", b"}"),
            (b"[", b"]"),
            (b"if (1) ", b""),
            (b"-", b""),
            (b"!", b""),
            (b"x = ", b""),
            (b"for (int q = 0; q < n; q++) ", b""),
            (b"1 + (", b")"),
            (b"a[", b"]"),
            (b"1 ? 2 : ", b""),
            (b"(int) ", b""),
            (b"meta_for (int q = 0; q < n; q++) ", b""),
            (b"meta_schedule {", b"}"),
            (b"while (1) {", b"}"),
            (b"1 + ", b""),
            (b"a[0] = 1; ", b""),
            (b"int y; ", b""),
            (b"sqrt(", b")"),
            (b"1 && ", b""),
            (b"else ", b""),
            (b"\n#if 1\n", b"\n#endif\n"),
            (b"/*", b"*/"),
            (b"*", b""),
            (b"if (n) a[0] = 1; else ", b""),
        )
    )
    core = opening * depth + b"1" + closing * (depth - random.choice((0, 0, 0, 1)))
    frame = random.randrange(4)
    if frame == 0:
        return core
    if frame == 1:
        return b"void f(int n, int a[n]) { int x = " + core + b"; meta_schedule { } }"
    inside = b"a[i + j] = " + core if frame == 2 else core
    loops = b"meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) "
    return b"void f(int n, int a[n]) { int x; meta_schedule { " + loops + b"{ " + inside + b"; } } }"


def long_line(random):
    piece = random.choice((*PIECES, b"1 + ", b"a[i] + ", b"int x; ", b"a[i] = 1; ", b" ", b"/* c */", b"x"))
    flat = (piece + random.choice((b"", b" "))) * ((1 << 20) // (len(piece) + 1))
    data = example(random)
    place = random.randrange(len(data))
    return data[:place] + flat.replace(b"\n", b" ") + data[place:] if random.random() < 0.7 else flat


def spliced(random):
    first, second = tokens(example(random)), tokens(example(random))
    return b"".join(first[: random.randrange(len(first))] + second[random.randrange(len(second)) :])


class TooLongError(Exception):
    pass


def _too_long(signum, frame):
    raise TooLongError


def outcome(data, directory, whole):
    """Try one input: ``parsed``, ``refused``, ``optimized`` or ``told`` (why nothing is written); else it raises."""
    from click.testing import CliRunner

    from metafork.analysis.races.diagnostics import check_races
    from metafork.comprehensive.cli import cli
    from metafork.frontend import parse, read_source
    from metafork.ir.messages.diagnostics import DiagnosticsError, render_json, render_text

    path = directory / "input.mf"
    path.write_bytes(data)
    texts = {}
    try:
        source = read_source(path)
        texts[source.name] = source.text
        unit = parse(source)
        check_races(unit)
        if not (whole and unit.schedules):
            return "parsed"
    except DiagnosticsError as error:
        if not all(one.message and one.reason and one.way_out for one in error.diagnostics):
            raise ValueError("a diagnostic does not say enough") from error
        render_text(error.diagnostics, texts)
        json.loads(render_json(error.diagnostics))
        return "refused"
    # The whole command: trees, kernels as CUDA and PTX, dispatcher, drawing.
    options = ["-o", str(directory / "out"), "--time-limit", "1", "--emit", "ptx"]
    result = CliRunner().invoke(cli, ["optimize", str(path), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 1, 4):
        raise ValueError(f"status {result.exit_code}: {result.output}")
    if result.exit_code == 1 and "Error: " not in result.output:
        raise ValueError(f"status 1 without a reason: {result.output}")
    return "told" if result.exit_code == 1 else "optimized"


def main(first, count, whole):
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    # Processor time, so that a busy machine makes no hang.
    signal.signal(signal.SIGPROF, _too_long)
    counts = Counter()
    seconds = (4 if whole else 1) * SECONDS * slowness()
    with tempfile.TemporaryDirectory(prefix="metafork-fuzz-") as temporary:
        for number in range(first, first + count):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            try:
                what = outcome(bad_input(number), Path(temporary), whole)
            except (Exception, RecursionError, MemoryError) as fault:  # noqa: BLE001 - whatever is raised is the finding
                what = "fault"
                trace = "".join(traceback.format_exception(fault)[-6:])[-3000:]
                print(json.dumps({"number": number, "fault": type(fault).__name__, "trace": trace}), flush=True)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            counts[what] += 1
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"counts": counts, "kilobytes": used.ru_maxrss, "seconds": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["optimize"])
