"""Text of PTX to code: ``metafork.ptx`` reads it, and what is added here are views with numbered registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from metafork.evaluators.registers.code import PtxBlock, PtxCode, PtxInstruction, form
from metafork.ptx.text.cfg import basic_blocks
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.opcodes import WRITES_FIRST, names_in, written
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import TYPE_BYTES, Address, Instruction, Module, Operand


def read_code(ptx: str) -> PtxCode:
    """Return the code of the one kernel in a PTX module.

    Raises ``ValueError`` where there is not exactly one, ``PtxError`` (a ``ValueError``) for text that is no PTX.
    """
    try:
        return _code(parse(ptx, placed=False))
    except PtxError:
        return _code(parse(ptx))  # an error says where


def _code(module: Module) -> PtxCode:
    kernels = module.kernels()
    if len(kernels) != 1:
        raise ValueError(f"the PTX has {len(kernels)} kernels")
    body = flatten(kernels[0])
    views = _Views({name: number for number, name in enumerate(body.registers)})
    instructions = [views.instruction(one) for one in body.instructions]
    blocks = tuple(
        PtxBlock(
            tuple(instructions[block.start : block.end]),
            tuple(dict.fromkeys(one for one in block.successors if one != EXIT)),
        )
        for block in basic_blocks(body)
    )
    sizes = tuple(TYPE_BYTES.get(kind, 0) for kind in body.registers.values())
    return PtxCode(blocks, tuple(body.registers), sizes)


_View: TypeAlias = tuple[tuple[int, ...], tuple[str, ...], bool]
"""What an operand names: registers by their numbers, and special registers; and whether it is an address."""


class _Views:
    """Views of one body's instructions; of each operand one, for the parser has one object for equal texts."""

    def __init__(self, registers: Mapping[str, int]) -> None:
        self.registers = registers
        self.operands: dict[int, _View] = {}

    def operand(self, operand: Operand) -> _View:
        """Look what an operand names."""
        registers = self.registers
        found: tuple[int, ...] = ()
        special: tuple[str, ...] = ()
        for name in names_in((operand,)):
            if name.text in registers:
                found += (registers[name.text],)
            elif name.text[0] == "%":
                special += (name.text,)
        view = self.operands[id(operand)] = found, special, isinstance(operand, Address)
        return view

    def instruction(self, code: Instruction) -> PtxInstruction:
        """Return the view of an instruction."""
        known, registers = self.operands, self.registers
        kind = form(code.opcode, code.modifiers)
        sources = [known.get(id(one)) or self.operand(one) for one in code.operands]
        defines: tuple[int, ...] = ()
        if code.opcode not in WRITES_FIRST:
            defines = tuple([registers[name.text] for name in written(code) if name.text in registers])
        elif sources:
            defines = sources[0][0]
        if defines:  # what is written comes first among the operands
            del sources[0]
        uses: tuple[int, ...] = ()
        address: tuple[int, ...] = ()
        special: tuple[str, ...] = ()
        for found, others, is_address in sources:
            if found:
                uses += found
                if is_address:
                    address += found
            if others:
                special += others
        guard = code.guard
        if guard is not None:
            uses += (registers[guard.name.text],)
        return PtxInstruction(kind, defines, uses, address, special, kind.cached, guard is not None, code.operands)
