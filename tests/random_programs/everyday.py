"""Random functions with what programs have beside their work.

Scalars that nobody reads, loops that may be empty, structures in each other, unsigned numbers that wrap around, and
pragmas of other tools in between.
"""

import re

from tests.random_programs.constructs import ConstructGenerator
from tests.random_programs.generator import FLOATING, INTEGER

OF_LOOPS = ("GCC ivdep", "GCC unroll 2", "unroll", "omp simd", "ivdep")
OF_STATEMENTS = ("scop", "endscop", "omp parallel for", "GCC diagnostic push", "STDC FP_CONTRACT OFF", "other tool (x)")


class EverydayGenerator(ConstructGenerator):
    """Functions that call others, with all of these."""

    def value(self, floating: bool, depth: int = 2, more: tuple[str, ...] = ()) -> tuple[list[str], str]:
        before, text = super().value(floating, depth, more)
        r = self.random
        if r.random() < 0.2:
            before = [*before, *self.dead(floating, text)]
        if (more and not floating) or r.random() < 0.5:
            return before, text
        match r.choice(("empty", "empty", "unsigned", "structures", "structures")):
            case "empty":
                return self.through_empty_loops(before, text, floating)
            case "unsigned":
                return before, f"({text} + {self.wrapping(text, floating)})"
            case _:
                return self.through_structures(before, text, floating)

    def dead(self, floating: bool, text: str) -> list[str]:
        """Statements that write scalars which nothing reads."""
        r = self.random
        name = self.fresh("z")
        kind = r.choice(("float", "double")) if floating else "int"
        head = f"{kind} {name}{r.choice(('', ' = 1', f' = {text}'))};"
        at = self.fresh("c")
        forms = (
            f"{name} = {text};",
            f"if ({self.condition()}) {name} = u0; else {name} = {text};",
            f"{{ int {at} = 0; while ({at} < 3) {{ {name} = {at}; {at}++; }} }}",
            f"{{ int {at} = u0; do {{ {name} = p0; {kind} y{name} = {name}; y{name} += 1; }} while (++{at} < 4); }}",
            f"for (int {at} = 0; {at} < 2; {at}++) {{ {name} = {at}; if ({at} == u0) break; }}",
        )
        return [head, *(r.choice(forms) for _ in range(r.randint(1, 2)))]

    def through_empty_loops(self, before: list[str], text: str, floating: bool) -> tuple[list[str], str]:
        """Add something up in loops that some threads, or all, do not run."""
        r = self.random
        total = self.fresh("t")
        axis = r.randrange(self.rank)
        element = r.choice(FLOATING if floating else INTEGER)
        p, u = f"p{axis}", f"u{axis}"
        kind = "double" if floating else "int"
        ends = [(f"(int){u}", [f"B{axis}"]), (f"(int){u} - 1", [f"B{axis}"]), (f"(int){p} % 4 - 2", ["4"])]
        if r.random() < 0.5:
            self.uses_m = True
            ends = [("m - 1", ["m"]), ("m - 3", ["m + 1"]), (f"m - (int){u}", ["m"])]
        end, extents = r.choice(ends)
        step = r.choice(("e++", "e++", "e += 2", "e += 4"))
        first = r.choice(("0", "0", "1", f"(int){u}"))
        x = self.masked(f"{self.array('a', element, extents, const=True)}[e]", element)
        inner = r.choice(
            (
                f"{total} += {x};",
                f"{total} = {total} * 0.5f + {x};" if floating else f"{total} ^= {x};",
                f"for (int h = e; h < (int){u} - 1; h++) {total} += h;",
                f"for (int h = 0; h < e; h++) {total} += {x} - h;",
            )
        )
        lines = [f"{kind} {total} = {text if floating else f'({text}) & 127'};"]
        if r.random() < 0.4:
            lines.append(f"#pragma {r.choice(OF_LOOPS)}")
        lines.append(f"for (int e = {first}; e < {end}; {step}) {{ {inner} }}")
        return [*before, *lines], total if floating else f"({total} & 127)"

    def wrapping(self, text: str, floating: bool) -> str:
        """A small number that unsigned arithmetic gives."""
        r = self.random
        axis = r.randrange(self.rank)
        seed = r.choice((f"(unsigned)p{axis}", f"(unsigned)u{axis}", "(unsigned)p0"))
        if not floating:
            seed = f"{r.choice(('', seed + ' + '))}(unsigned)({text})"
        forms = (
            f"(({seed}) * 2654435761u >> 28)",
            f"(({seed} - 5u) % 7u)",
            f"(~({seed}) & 15u)",
            f"(({seed} - 1u < 3u) + 1u)",
            f"(unsigned char)({seed} * 77u)",
            f"((({seed}) << 5 ^ ({seed}) >> 3) / 3u % 11u)",
            f"(unsigned)((unsigned long long)({seed}) * 0x9e3779b97f4a7c15ull >> 60)",
        )
        return f"(int){r.choice(forms)}"

    def through_structures(self, before: list[str], text: str, floating: bool) -> tuple[list[str], str]:
        """Add members of structures in structures, copied, put together, chosen and read in place."""
        r = self.random
        element = r.choice(FLOATING if floating else INTEGER)
        tag = f"{self.name}_s{len(self.functions)}"
        pair, whole = f"struct {tag}", f"struct {tag}w"
        self.functions.append(f"{pair} {{ {element} x, y; }};")
        size = r.randint(2, 3)
        self.functions.append(f"{whole} {{ {pair} c[{size}]; {element} r; {pair} d; }};")
        name = self.array("a", whole, [f"N{axis} + 1" for axis in range(self.rank)], const=True)
        at = name + "".join(f"[p{axis}{r.choice(('', ' + 1'))}]" for axis in range(self.rank))
        there = r.choice((f"{at}.d", f"{at}.c[{size - 1}]", f"{at}.c[u0 % {size}]"))
        own = self.fresh("q")
        part = f"({element})({text if floating else f'({text}) & 15'})"
        ways = (
            [f"{pair} {own} = {there};"],
            [f"{pair} {own} = {{.y = {part}}};"],
            [f"{pair} {own} = {{{part}}};", f"if ({self.condition()}) {own} = {there};"],
            [f"{pair} {own} = {self.condition()} ? {there} : {at}.d;", f"{own}.x = {part};"],
            [f"{pair} {own} = {there};", f"{own} = ({pair}){{{own}.y, {own}.x}};"],
            [f"{whole} {own}w = {at};", f"{pair} {own} = {own}w.c[1];", f"{own}.x = {own}w.d.y;"],
            [f"{whole} {own}w = {{.c = {{{{{part}}}, [1].y = 3}}, .d = {there}}};", f"{pair} {own} = {own}w.c[1];"],
        )
        lines = r.choice(ways)
        sums = [self.masked(f"{own}.{member}", element) for member in r.choice(("x", "y", "xy"))]
        if r.random() < 0.3:
            sums.append(self.masked(f"{there}.y", element))
        return [*before, *lines], f"({text} + {' + '.join(sums)})"

    def text(self) -> str:
        r = self.random
        text = super().text()
        if r.random() < 0.4:
            text = re.sub(r"\n(?=  meta_schedule)", lambda _: f"\n#pragma {r.choice(OF_STATEMENTS)}\n", text, count=1)
        if r.random() < 0.3:
            text = re.sub(r"\n}\n$", f"\n  #pragma {r.choice(OF_STATEMENTS)}\n}}\n", text)
        if r.random() < 0.2:
            text = re.sub(r"\n(?=  meta_for)", f'\n  _Pragma("{r.choice(OF_LOOPS[2:])}")\n', text, count=1)
        return text
