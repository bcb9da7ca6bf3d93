"""Scalars of a kernel that the host computes, for tests that call kernels themselves."""

from metafork.ir.arithmetic.evaluation import integer_value


def with_host_scalars(kernel, numbers):
    """Numbers by name, and what the host makes of them before a launch."""
    values = dict(numbers)
    for scalar in kernel.host_scalars:
        if scalar.name not in values:
            values[scalar.name] = integer_value(scalar.definition, values)
    return values
