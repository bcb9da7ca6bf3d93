"""Random kernels: transformed code leaves the same memory, whatever stores, branches and loops stand between loads.

One warp a launch, so that lanes run in lockstep and even racy programs have one outcome.
"""

import random

import pytest

from tests.metafork.ptx.snippets import INDEX, deltas, kernel, run, shuffled
from tests.sampling import sampled

BLOCKS = ((32, 1, 1), (31, 1, 1), (7, 4, 1), (8, 2, 2))


class Generator:
    """Random bodies over arrays a (%rd4) and b (%rd5); sums are kept in %f30."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.labels = 0
        self.written = self.random.random() < 0.6
        self.stored = False
        self.register = 0

    def place(self):
        base = self.random.choice(["%rd4", "%rd4", "%rd4", "%rd20", "%rd20", "%rd5", "%rd22", "%rd23"])
        return base, 4 * self.random.randint(-3, 3)

    def load(self, inside):
        base, offset = self.place()
        # Read-only loads stand before anything is written: after it they are wrong in the program itself.
        pure = not self.written or not (self.stored or inside)
        nc = self.random.choice(["", ".nc"]) if pure and base != "%rd5" else ""
        self.register = self.register % 20 + 1
        guard = self.random.choice(["", "", "", "", "@%p7 "])
        if self.random.random() < 0.1 and not guard:
            count = self.random.choice([2, 4])
            names = [f"%f{31 + element}" for element in range(count)]
            return [
                f"ld.global{nc}.v{count}.f32 {{{', '.join(names)}}}, [%rd24+{4 * count * self.random.randint(-2, 2)}];",
                *(f"fma.rn.f32 %f30, %f30, 0f3F000000, {name};" for name in names),
                f"ld.global{nc}.f32 %f31, [%rd24+{4 * self.random.randint(-8, 8)}]; add.f32 %f30, %f30, %f31;",
            ]
        if self.random.random() < 0.6:
            kind = self.random.choice(["f32", "f32", "b32"])
            value = f"%f{self.register}"
            return [
                f"{guard}ld.global{nc}.{kind} {value}, [{base}+{offset}];",
                f"fma.rn.f32 %f30, %f30, 0f3F000000, {value};",
            ]
        # One place, read by types and into registers of several kinds.
        size = self.random.choice([8, 16, 32, 64])
        base = "%rd34" if size == 64 else self.random.choice(["%rd4", "%rd20"])
        lines = []
        for _ in range(self.random.randint(1, 3)):
            width = self.random.choice([width for width in (16, 32, 64, 64) if size <= width])
            bits = {16: "%h1", 32: "%r33", 64: "%rd33"}[width]
            lines += [
                f"mov.b{width} {bits}, 0;" if guard else "",
                f"{guard}ld.global{nc}.{self.random.choice('sub')}{size} {bits}, [{base}+{offset // 4 * 8}];",
                "" if width == 64 else f"cvt.u64.u{width} %rd33, {bits};",
                "mul.lo.s64 %rd31, %rd31, 31; xor.b64 %rd31, %rd31, %rd33;",
            ]
        return lines

    def store(self):
        base, offset = self.place()
        offset += self.random.choice([0, 0, 4 * 40, -4 * 40])
        if not self.written:
            base, offset = "%rd5", 4096
        guard = self.random.choice(["", "", "@%p7 "])
        self.stored = True
        return [f"{guard}st.global.f32 [{base}+{offset}], %f30;"]

    def skip(self, depth, inside):
        self.labels += 1
        label = f"SKIP{self.labels}"
        condition = self.random.choice(["%p6", "%p7", "!%p6", "%p5", "%p5"])
        return [f"@{condition} bra {label};", *self.body(depth - 1, inside), f"{label}:"]

    def loop(self, depth):
        self.labels += 1
        label, counter = f"LOOP{self.labels}", f"%r{20 + self.labels % 10}"
        bound = self.random.choice(["2", "3", "%r30"])
        step = self.random.choice(["add.s64 %rd20, %rd20, 8;", "add.s64 %rd20, %rd20, %rd21;", ""])
        if self.random.random() < 0.4:
            # Some lanes leave a pass out, and meet the others one pass ahead.
            skips = self.random.choice(["%p5", "%p7", "%p6"])
            return [
                f"mov.u32 {counter}, 0;", f"{label}:", step, f"add.s32 {counter}, {counter}, 1;",
                f"setp.eq.and.s32 %p8, {counter}, {self.random.randint(1, 2)}, {skips};", f"@%p8 bra {label};",
                *self.body(depth - 1, inside=True), f"setp.lt.u32 %p8, {counter}, {bound};", f"@%p8 bra {label};",
            ]  # fmt: skip
        return [
            f"mov.u32 {counter}, 0;", f"{label}:", *self.body(depth - 1, inside=True), step,
            f"add.s32 {counter}, {counter}, 1;",
            f"setp.lt.u32 %p8, {counter}, {bound};", f"@%p8 bra {label};",
        ]  # fmt: skip

    def body(self, depth, inside=False):
        lines = []
        for _ in range(self.random.randint(3, 9)):
            choice = self.random.random()
            if choice < 0.70:
                lines += self.load(inside)
            elif choice < 0.77:
                lines += self.store()
            elif choice < 0.79:
                lines.append("membar.cta;")
            elif choice < 0.83:
                lines += ["add.s64 %rd20, %rd20, 4;"]
            elif depth and choice < 0.94:
                lines += self.skip(depth, inside)
            elif depth and self.labels < 8:
                lines += self.loop(depth)
        return lines

    def text(self):
        setup = """
        mov.f32 %f30, 0f3F800000; mov.u64 %rd20, %rd4; and.b32 %r31, %r4, 3; add.s32 %r30, %r31, 1;
        mul.wide.u32 %rd21, %r31, 4;
        mov.b64 %rd31, 0; mul.wide.s32 %rd34, %r5, 8; add.s64 %rd34, %rd1, %rd34;
        add.s32 %r33, %r5, -1; max.s32 %r33, %r33, 0; mul.wide.s32 %rd22, %r33, 4; add.s64 %rd22, %rd1, %rd22;
        add.s32 %r33, %r5, 1; rem.s32 %r33, %r33, %r1; mul.wide.s32 %rd23, %r33, 4; add.s64 %rd23, %rd1, %rd23;
        mul.wide.s32 %rd24, %r5, 16; add.s64 %rd24, %rd1, %rd24;
        and.b32 %r31, %r1, 1; setp.eq.u32 %p6, %r31, 0; and.b32 %r31, %r4, 1; setp.eq.u32 %p7, %r31, 0;
        add.s32 %r31, %r1, -3; setp.lt.s32 %p5, %r5, %r31;
        """
        registers = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(1, 21))
        body = setup + registers + "\n".join(self.body(3)) + RESULTS
        if self.random.random() < 0.5:
            return kernel(body)
        # Rows of threads work on rows of the arrays, which a warp of several rows straddles.
        rows = "mad.lo.s32 %r5, %r2, %r3, %r4; mov.u32 %r32, %tid.y; mad.lo.s32 %r5, %r32, 9, %r5;"
        return kernel(body, index=INDEX.replace("mad.lo.s32 %r5, %r2, %r3, %r4;", rows))


RESULTS = """
    st.global.f32 [%rd5+2048], %f30;
    shr.u64 %rd32, %rd31, 32; xor.b64 %rd31, %rd31, %rd32; cvt.u32.u64 %r33, %rd31; st.global.u32 [%rd5+3072], %r33;
"""


def replaced_and_equal(seed):
    """Compare a random kernel with its transformation; return how many loads were replaced."""
    before = Generator(seed).text()
    after, report = shuffled(before)
    if after != before:
        for n in (30, 64):
            for block in BLOCKS:
                for aliased in (False, True):
                    launch = {"n": n, "grid": (1, 1, 1), "block": block, "aliased": aliased, "seed": seed, "size": 4096}
                    assert run(before, **launch) == run(after, **launch), (seed, launch)
    return len(deltas(report)) + len(report.reuses)


@pytest.mark.parametrize("start", sampled(range(0, 30, 10), 1))
@pytest.mark.slow
def test_random_kernels_keep_their_results(start):
    assert sum(replaced_and_equal(seed) for seed in range(start, start + 10)) > 8


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1200, 50))
def test_many_random_kernels_keep_their_results(start):
    assert sum(replaced_and_equal(seed) for seed in range(start, start + 50)) > 40
