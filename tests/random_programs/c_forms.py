"""Random functions in forms of C as people write them.

Pointers that walk, are chosen or may be null, tables of pointers, ``switch``, arrays in front of the schedule that each
iteration writes first, arrays that are filled and copied, literals, bits of integers.
"""

import re

from tests.random_programs.constructs import ConstructGenerator
from tests.random_programs.generator import FLOATING, INTEGER


class FormGenerator(ConstructGenerator):
    """Functions that call others, with all of these."""

    def value(self, floating: bool, depth: int = 2, more: tuple[str, ...] = ()) -> tuple[list[str], str]:
        before, text = super().value(floating, depth, more)
        r = self.random
        if r.random() < 0.4:
            return before, text
        kind = r.choice(("float", "double")) if floating else r.choice(("int", "long", "short"))
        part = text if floating else f"((int)({text}) & 127)"
        through = r.choice((self.walked, self.chosen, self.switched, self.scratch, self.filled, self.given))
        lines, read = through(kind, part, floating)
        return [*before, *lines], read if floating else f"(({read}) & 127)"

    def number(self) -> str:
        """A small number that depends on the place of an iteration."""
        return self.random.choice(("p0 & 3", "(p0 + u0) % 4", "u0 & 1", "u0 % 3"))

    def walked(self, kind: str, part: str, _floating: bool) -> tuple[list[str], str]:
        """Walk through an array of the thread, up or down, by steps of one or two."""
        r = self.random
        name, at, size = self.fresh("o"), self.fresh("w"), 2 * r.randint(2, 4)
        loops = (
            [f"{kind} *{at} = {name};", f"for (int l = 0; l < {size}; l++) *{at}++ += l;"],
            [f"{kind} *{at} = {name} + {size - 1};", f"for (int l = 0; l < {size}; l++, {at}--) {at}[0] -= l;"],
            [f"{kind} *{at} = {name};", f"for (int l = 0; l < {size // 2}; l++) {{ {at}[1] = *{at}; {at} += 2; }}"],
            [f"{kind} *{at} = {name}, *{at}e = {at} + {size};", f"while ({at} < {at}e) *{at}++ *= 2;"],
            [f"for ({kind} *{at} = {name}; {at} != {name} + {size}; ++{at}) *{at} += {at} - {name};"],
            [
                f"{kind} *{at} = {name};",
                f"for (int l = 0; l < 2; l++) {{ for (int k1 = 0; k1 < {size // 2}; k1++) *{at}++ += l; }}",
            ],
            [f"{kind} *{at};", f"{at} = &{name}[1]; if ({self.condition()}) {at}++; *{at} = 5; {at}[-1] += 1;"],
        )
        read = f"{name}[{r.choice(('0', str(size - 1), f'({self.number()})'))}]"
        return [f"{kind} {name}[{size}] = {{{part}, 3}};", *r.choice(loops)], read

    def chosen(self, kind: str, part: str, _floating: bool) -> tuple[list[str], str]:
        """Choose one of two arrays of the thread, or of a table of them."""
        r = self.random
        one, two, at = self.fresh("o"), self.fresh("o"), self.fresh("w")
        lines = [f"{kind} {one}[4] = {{{part}, 3}}, {two}[4] = {{5, {part}}};"]
        ways = (
            [f"{kind} *{at} = {self.condition()} ? {one} : {two} + 1;", f"*{at} += 2; {at}[1]++;"],
            [f"{kind} *{at}t[2] = {{{one}, {two}}};", f"{kind} *{at} = {at}t[u0 & 1];", f"{at}[1] = {at}t[1][2] + 1;"],
            [f"int {at}k = {self.number()};", f"{kind} *{at} = {at}k ? {two} : {one};", f"{at}k = 9; *{at} += {at}k;"],
        )
        return [*lines, *r.choice(ways)], f"{at}[{r.choice(('0', '1', self.number() + ' & 1'))}] + {one}[0]"

    def switched(self, kind: str, part: str, _floating: bool) -> tuple[list[str], str]:
        """Let a value go through a ``switch``, with code that falls through and a ``break`` within."""
        r = self.random
        name = self.fresh("o")
        ends = [r.choice((" break;", " break;", "")) for _ in range(3)]
        early = f"if ({self.condition()}) break; " if r.random() < 0.5 else ""
        cases = [
            f"case 0: {name} += 1;{ends[0]}",
            f"case 1: case 3: {early}{name} = {name} * 2;{ends[1]}",
            f"{r.choice(('default', 'case 2'))}: {{ {kind} t = {name}; {name} = t - 3; }}{ends[2]}",
        ]
        r.shuffle(cases)
        return [f"{kind} {name} = {part};", f"switch ({self.number()}) {{ {' '.join(cases)} }}"], name

    def scratch(self, kind: str, part: str, _floating: bool) -> tuple[list[str], str]:
        """Use an array of the function as each iteration's own."""
        r = self.random
        name, size = self.fresh("h"), r.randint(2, 4)
        self.in_front.append(f"{kind} {name}[{size}];")
        writes = (
            f"for (int l = 0; l < {size}; l++) {name}[l] = {part} + l;",
            f"memset({name}, 0, sizeof {name}); {name}[{size - 1}] = {part};",
            " ".join(f"{name}[{number}] = {part} - {number};" for number in range(size)),
            f"{{ int l = 0; while (l < 1) l++; for (int k1 = 0; k1 < {size}; k1++) {name}[k1] = {part} * l; }}",
        )
        return [r.choice(writes)], f"{name}[0] + {name}[{self.number()} % {size}]"

    def filled(self, kind: str, part: str, floating: bool) -> tuple[list[str], str]:
        """Fill and copy arrays of the thread, and read literals and bits."""
        name = self.fresh("o")
        lines = [
            f"{kind} {name}[4], {name}c[4];",
            f"memset({name}, 0, sizeof({name})); {name}[1] = {part};",
            f"memcpy({name}c, {name}, 3 * sizeof({kind})); {name}c[3] = 2;",
        ]
        bits = "" if floating else f" + __builtin_popcount({name}[1]) + (p0 ? __builtin_ctz(p0) : 7)"
        return lines, f"{name}c[{self.number()}] + ({kind}[]){{1, 2, {name}[1], 4}}[{self.number()}]{bits}"

    def given(self, _kind: str, part: str, floating: bool) -> tuple[list[str], str]:
        """Read an array that may not be given."""
        r = self.random
        element = r.choice(FLOATING if floating else INTEGER)
        name = self.array("a", element, [f"N{axis}" for axis in range(self.rank)], const=True)
        at = name + "".join(f"[p{axis}]" for axis in range(self.rank))
        read = at if floating else f"({at} & 127)"
        asked = r.choice((name, f"0 != {name}", f"{name} != 0"))
        if r.random() < 0.5:
            return [], f"({asked} ? {read} : {part})"
        own = self.fresh("o")
        return [f"double {own} = {part};", f"if ({asked}) {own} += {read};"], own if floating else f"(int){own}"

    def text(self) -> str:
        self.in_front: list[str] = []
        text = super().text()
        lines = "".join(f"  {line}\n" for line in self.in_front)
        return re.sub(r"\n(?=  meta_schedule)", lambda _: f"\n{lines}", text, count=1)
