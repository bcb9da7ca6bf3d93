"""Random functions whose threads compute with complex numbers, in arrays and in variables."""

from tests.random_programs.constructs import ConstructGenerator


class ComplexGenerator(ConstructGenerator):
    """Functions of that kind with complex arithmetic between what others compute and store."""

    names: tuple[str, ...] = ()

    def number(self, depth: int = 2) -> tuple[list[str], str]:
        """Return a complex number, or a real one, and what is to be done before."""
        r = self.random
        if depth == 0 or r.random() < 0.25:
            if self.names and r.random() < 0.6:
                return [], r.choice(self.names)
            before, value = self.value(True, 1)
            made = (f"CMPLXF({value}, p0 - 2)", f"CMPLX(p0 * 0.5, {value})", f"({value} + (p0 - 1) * I)", f"({value})")
            return before, r.choice(made)
        kind = r.random()
        before, left = self.number(depth - 1)
        if kind < 0.2:
            return before, r.choice((f"(-({left}))", f"conj({left})", f"conjf({left})", f"(({left}) / 3)"))
        more, right = self.number(depth - 1)
        return [*before, *more], f"({left} {r.choice('+-**')} {right})"

    def statements(self, more: tuple[str, ...] = (), accumulate: bool = False) -> list[str]:
        lines = super().statements(more, accumulate)
        r = self.random
        outer, self.names = self.names, ()
        for _ in range(r.randint(1, 3)):
            before, value = self.number()
            name = self.fresh("z")
            lines += [*before, f"{r.choice(('float', 'double'))} complex {name} = {value};"]
            self.names += (name,)
            if r.random() < 0.4:
                before, value = self.number(1)
                lines += [*before, f"if ({name} != {value}) {name} {r.choice(('=', '+=', '*=', '-='))} {value};"]
        place = self.output(True)[1]
        before, value = self.number()
        self.names = outer
        return [*lines, *before, f"{place} = {r.choice(('creal', 'cimag', 'crealf', 'cimagf'))}({value});"]

    def text(self) -> str:
        return "#include <complex.h>\n" + super().text()
