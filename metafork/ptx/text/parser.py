"""Tokens → the frozen representation of ``syntax``.

A recursive descent over the token tuples.  Only the header, declarations, functions, labels and instructions are
read; other directives are carried through as text, so that debug information survives.  Operands of a form that no
analysis needs become ``Verbatim``.
"""

from __future__ import annotations

from metafork.ptx.text.lexer import Tokens, tokenize
from metafork.ptx.text.operands import PlainOperands, integer_literal
from metafork.ptx.text.source import NOWHERE, PtxError, Span
from metafork.ptx.text.syntax import (
    SPACES,
    TYPE_BYTES,
    Address,
    Declaration,
    Declarator,
    Directive,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Item,
    Label,
    Module,
    Name,
    Negated,
    Offset,
    Operand,
    Pair,
    Pointer,
    Scope,
    Statement,
    Vector,
    Verbatim,
)

_LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
_LINE_DIRECTIVES = frozenset({".loc", ".file"})
_OPENING = {"(": ")", "[": "]", "{": "}"}
_TYPES = frozenset(TYPE_BYTES) | {"pred", "texref", "samplerref", "surfref", "texmode"}


def parse(text: str, *, placed: bool = True) -> Module:
    """Read a PTX module; where nobody asks, instructions need not be ``placed``, and most stand ``NOWHERE``.

    Raises:
        PtxError: the text is no PTX; the error has line and column.
    """
    return _Parser(tokenize(text), placed=placed).module()


class _Parser:
    """The cursor over one text; methods read one construct each and leave the cursor behind it."""

    def __init__(self, tokens: Tokens, *, placed: bool) -> None:
        self.tokens = tokens
        self.placed = placed
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.at = 0
        self.mnemonics: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.operands = PlainOperands()

    def span(self) -> Span:
        return self.tokens.span_at(self.tokens.offsets[self.at])

    def failure(self, expected: str) -> PtxError:
        found = self.texts[self.at]
        return PtxError(
            f"expected {expected}, found {found if self.kinds[self.at] == 'end' else repr(found)}", self.span()
        )

    def accept(self, text: str) -> bool:
        if self.texts[self.at] == text and self.kinds[self.at] != "end":
            self.at += 1
            return True
        return False

    def expect(self, text: str, context: str) -> None:
        if not self.accept(text):
            raise self.failure(f"{text!r} {context}")

    def word(self, what: str) -> str:
        if self.kinds[self.at] != "word":
            raise self.failure(what)
        self.at += 1
        return self.texts[self.at - 1]

    def integer(self, what: str) -> int:
        if self.kinds[self.at] != "number":
            raise self.failure(what)
        try:
            value = integer_literal(self.texts[self.at])
        except ValueError:
            raise self.failure(what) from None
        self.at += 1
        return value

    # --- module ---------------------------------------------------------------------------------------------------

    def module(self) -> Module:
        version: tuple[int, int] | None = None
        target: tuple[str, ...] = ()
        address_size: int | None = None
        items: list[Item] = []
        while self.kinds[self.at] != "end":
            text = self.texts[self.at]
            if text == ".version":
                version = self._version()
            elif text == ".target":
                self.at += 1
                target = (*target, *self._targets())
            elif text == ".address_size":
                self.at += 1
                address_size = self.integer("the address size, 32 or 64")
            else:
                if version is None:
                    raise self.failure("'.version' at the head of the module")
                items.append(self.item())
        if version is None:
            raise self.failure("'.version' at the head of the module")
        if not target:
            raise self.failure("a '.target' directive")
        return Module(version, target, address_size, tuple(items))

    def _version(self) -> tuple[int, int]:
        self.at += 1
        major, dot, minor = self.texts[self.at].partition(".")
        if self.kinds[self.at] != "number" or not dot or not major.isdigit() or not minor.isdigit():
            raise self.failure("a version such as 8.0")
        self.at += 1
        return int(major), int(minor)

    def _targets(self) -> list[str]:
        words = [self.word("a target such as sm_80")]
        while self.accept(","):
            words.append(self.word("a target option"))
        return words

    def item(self) -> Item:
        text = self.texts[self.at]
        if self.kinds[self.at] != "dot":
            raise self.failure("a directive")
        if text in _LINE_DIRECTIVES:
            return self._line_directive()
        if text == ".section":
            return self._section()
        span = self.span()
        linkage = self._linkage()
        text = self.texts[self.at]
        if text in (".entry", ".func"):
            return self.function(linkage, span)
        if text[1:] in SPACES:
            declaration = self.declaration(linkage, span)
            self.expect(";", "after the declaration")
            return declaration
        if linkage:
            raise self.failure("a function or a variable after its linkage")
        return self._directive()

    def _linkage(self) -> tuple[str, ...]:
        linkage = []
        while self.texts[self.at] in _LINKAGE:
            linkage.append(self.texts[self.at][1:])
            self.at += 1
        return tuple(linkage)

    def _line_directive(self) -> Directive:
        """``.loc`` and ``.file`` have no semicolon: they end with their line."""
        offset = self.tokens.offsets[self.at]
        span = self.span()
        end = self.tokens.text.find("\n", offset)
        end = len(self.tokens.text) if end < 0 else end
        text = self.tokens.text[offset:end].split("//")[0].rstrip()
        while self.tokens.offsets[self.at] < end and self.kinds[self.at] != "end":
            self.at += 1
        return Directive(text.removesuffix(";"), span)

    def _section(self) -> Directive:
        start, span = self.at, self.span()
        while self.texts[self.at] != "}":
            if self.kinds[self.at] == "end":
                raise self.failure("'}' at the end of the section")
            self.at += 1
        self.at += 1
        return Directive(self._slice(start, self.at), span)

    def _slice(self, start: int, end: int) -> str:
        """Return the text from token ``start`` up to and without token ``end``, blanks at the end removed."""
        last = end - 1
        return self.tokens.text[self.tokens.offsets[start] : self.tokens.offsets[last] + len(self.texts[last])]

    def _directive(self) -> Directive:
        start, span = self.at, self.span()
        while self.texts[self.at] != ";":
            if self.kinds[self.at] == "end":
                raise self.failure("';' after the directive")
            self.at += 1
        self.at += 1
        return Directive(self._slice(start, self.at), span)

    # --- functions and declarations -------------------------------------------------------------------------------

    def function(self, linkage: tuple[str, ...], span: Span) -> Function:
        kernel = self.texts[self.at] == ".entry"
        self.at += 1
        attributes = self._attributes()
        results = self._parameters() if self.texts[self.at] == "(" else ()
        name = self.word("the function's name")
        parameters = self._parameters() if self.texts[self.at] == "(" else ()
        directives = [*attributes]
        while self.kinds[self.at] == "dot":
            start = self.at
            self.at += 1
            while self.kinds[self.at] != "dot" and self.texts[self.at] not in ("{", ";"):
                if self.kinds[self.at] == "end":
                    raise self.failure("the function's body")
                self.at += 1
            if self.texts[self.at] == ";" and self.texts[start] == ".pragma":
                self.at += 1
            directives.append(self._slice(start, self.at))
        if self.accept(";"):
            return Function(linkage, kernel, results, name, parameters, tuple(directives), None, span)
        self.expect("{", "before the function's body")
        body = self._statements()
        return Function(linkage, kernel, results, name, parameters, tuple(directives), body, span)

    def _attributes(self) -> list[str]:
        attributes = []
        while self.texts[self.at] == ".attribute":
            start = self.at
            while not self.accept(")"):
                if self.kinds[self.at] == "end":
                    raise self.failure("')' after the attribute")
                self.at += 1
            attributes.append(self._slice(start, self.at))
        return attributes

    def _parameters(self) -> tuple[Declaration, ...]:
        self.expect("(", "before the parameters")
        parameters: list[Declaration] = []
        while not self.accept(")"):
            if parameters:
                self.expect(",", "between parameters")
            span = self.span()
            if self.texts[self.at][1:] not in SPACES:
                raise self.failure("a parameter declaration or ')'")
            parameters.append(self.declaration((), span, single=True))
        return tuple(parameters)

    def declaration(self, linkage: tuple[str, ...], span: Span, *, single: bool = False) -> Declaration:
        space = self.texts[self.at][1:]
        self.at += 1
        attributes = tuple(self._attributes())
        alignment: int | None = None
        vector: str | None = None
        kind: str | None = None
        pointer: Pointer | None = None
        while self.kinds[self.at] == "dot":
            word = self.texts[self.at][1:]
            if word == "align":
                self.at += 1
                alignment = self.integer("an alignment in bytes")
            elif word == "ptr":
                self.at += 1
                pointer = self._pointer()
            elif word in ("v2", "v4", "v8"):
                self.at += 1
                vector = word
            elif word in _TYPES:
                self.at += 1
                kind = word
            else:
                raise self.failure("a type, '.align' or a name")
        if kind is None:
            raise self.failure("a type")
        declarators = [self._declarator()]
        while not single and self.accept(","):
            declarators.append(self._declarator())
        return Declaration(linkage, space, attributes, alignment, vector, kind, pointer, tuple(declarators), span)

    def _pointer(self) -> Pointer:
        space: str | None = None
        alignment: int | None = None
        restrict = False
        while self.kinds[self.at] == "dot":
            word = self.texts[self.at][1:]
            if word == "align":
                self.at += 1
                alignment = self.integer("an alignment in bytes")
                continue
            if word == "restrict":
                restrict = True
            elif word in SPACES:
                space = word
            else:
                break
            self.at += 1
        return Pointer(space, alignment, restrict)

    def _declarator(self) -> Declarator:
        name = self.word("a name")
        count: int | None = None
        extents: list[int | None] = []
        if self.accept("<"):
            count = self.integer("a register count")
            self.expect(">", "after the register count")
        while self.accept("["):
            extents.append(None if self.texts[self.at] == "]" else self.integer("an extent"))
            self.expect("]", "after the extent")
        initialiser = self._initialiser() if self.accept("=") else None
        return Declarator(name, count, tuple(extents), initialiser)

    def _initialiser(self) -> str:
        start, depth = self.at, 0
        while depth or self.texts[self.at] not in (",", ";"):
            text = self.texts[self.at]
            if self.kinds[self.at] == "end":
                raise self.failure("';' after the initialiser")
            depth += (text in _OPENING) - (text in _OPENING.values())
            self.at += 1
        return self._slice(start, self.at)

    # --- statements -----------------------------------------------------------------------------------------------

    def _statements(self) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        while True:
            if self.kinds[self.at] == "plain":  # as nearly all are
                statements.append(self._plain(None, self.span() if self.placed else NOWHERE))
            elif self.accept("}"):
                return tuple(statements)
            elif self.kinds[self.at] == "end":
                raise self.failure("'}' at the end of the body")
            elif not self.accept(";"):
                statements.append(self.statement())

    def statement(self) -> Statement:
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "word":
            if self.texts[self.at + 1] == ":":
                span = self.span()
                self.at += 2
                return Label(text, span)
            return self.instruction(None, self.span())
        if text == "@":
            span = self.span()
            self.at += 1
            negated = self.accept("!")
            guard = Guard(self._name(), negated)
            return self.instruction(guard, span)
        if text == "{":
            span = self.span()
            self.at += 1
            return Scope(self._statements(), span)
        if kind == "dot":
            if text in _LINE_DIRECTIVES:
                return self._line_directive()
            if text[1:] in SPACES or text in _LINKAGE:
                span = self.span()
                declaration = self.declaration(self._linkage(), span)
                self.expect(";", "after the declaration")
                return declaration
            return self._directive()
        raise self.failure("a statement")

    def _plain(self, guard: Guard | None, span: Span) -> Instruction:
        """Read an instruction that is one token; what was read before is not read again."""
        mnemonic, *written = self.texts[self.at][:-1].split()
        if mnemonic[0] == "@":
            if guard is not None:
                raise self.failure("an opcode")
            guard = Guard(Name(mnemonic.lstrip("@!")), mnemonic[1] == "!")
            mnemonic, *written = written
        self.at += 1
        found = self.mnemonics.get(mnemonic)
        if found is None:
            first, *others = mnemonic.split(".")
            found = self.mnemonics[mnemonic] = first, tuple(others)
        opcode, modifiers = found
        # No operand has blanks in it.
        operands = map(self.operands.__getitem__, "".join(written).split(","))
        return Instruction(guard, opcode, modifiers, tuple(operands), span)

    def instruction(self, guard: Guard | None, span: Span) -> Instruction:
        if self.kinds[self.at] == "plain":
            return self._plain(guard, span)
        opcode = self.word("an opcode")
        modifiers: list[str] = []
        while self.kinds[self.at] == "dot":
            modifiers.append(self.texts[self.at][1:])
            self.at += 1
        operands: list[Operand] = []
        if self.texts[self.at] != ";":
            operands.append(self.operand())
            while self.accept(","):
                operands.append(self.operand())
        self.expect(";", f"after the operands of {opcode}")
        return Instruction(guard, opcode, tuple(modifiers), tuple(operands), span)

    def _name(self) -> Name:
        text = self.word("a register")
        if self.kinds[self.at] == "dot" and self.tokens.offsets[self.at] == self.tokens.offsets[self.at - 1] + len(
            text
        ):
            self.at += 1
            return Name(text, self.texts[self.at - 1][1:])
        return Name(text)

    def operand(self) -> Operand:
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "word":
            name = self._name()
            following = self.texts[self.at]
            if following == "|":
                self.at += 1
                return Pair(name, self._name())
            if following in ("+", "-") and name.component is None:
                return Offset(name, self._offset())
            return name
        if kind == "number":
            self.at += 1
            return Immediate(text)
        if text == "-" and self.kinds[self.at + 1] == "number":
            self.at += 2
            return Immediate("-" + self.texts[self.at - 1])
        if text == "!":
            self.at += 1
            return Negated(self._name())
        if text == "[":
            return self._address()
        if text == "{":
            return Vector(self._elements("{", "}"))
        if text == "(":
            return Group(self._elements("(", ")"))
        raise self.failure("an operand")

    def _elements(self, opening: str, closing: str) -> tuple[Operand, ...]:
        self.expect(opening, "")
        elements: list[Operand] = []
        while not self.accept(closing):
            if elements:
                self.expect(",", f"or {closing!r} between operands")
            elements.append(self.operand())
        return tuple(elements)

    def _offset(self) -> int:
        """Read ``+4``, ``-4`` and nvcc's ``+-4``."""
        sign = -1 if self.texts[self.at] == "-" else 1
        self.at += 1
        if self.accept("-"):
            sign = -sign
        return sign * self.integer("an offset in bytes")

    def _address(self) -> Operand:
        start = self.at
        self.at += 1
        base: Name | Immediate | None = None
        if self.kinds[self.at] == "word":
            base = self._name()
        elif self.kinds[self.at] == "number":
            base = Immediate(self.texts[self.at])
            self.at += 1
        if base is not None:
            offset = 0
            if self.texts[self.at] in ("+", "-") and (
                self.kinds[self.at + 1] == "number" or self.texts[self.at + 1] == "-"
            ):
                offset = self._offset()
            if self.accept("]"):
                return Address(base, offset)
        self.at = start
        return self._verbatim()

    def _verbatim(self) -> Verbatim:
        start, depth = self.at, 0
        names: list[Name] = []
        while True:
            text = self.texts[self.at]
            if self.kinds[self.at] == "end" or text == ";":
                raise self.failure("']' at the end of the address")
            if self.kinds[self.at] == "word":
                names.append(self._name())
                continue
            depth += (text in _OPENING) - (text in _OPENING.values())
            self.at += 1
            if depth == 0:
                return Verbatim(self._slice(start, self.at), tuple(names))
