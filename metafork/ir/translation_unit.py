"""One parsed ``.mf`` file: its text, the functions that hold schedules, and the schedules with their programs.

Whoever prints the host side replaces the span of each schedule in the text and leaves everything else as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.diagnostics import Diagnostic
from metafork.ir.messages.source import Source, Span
from metafork.ir.program import Array, Expr, Program, Slot


class FunctionParameter(Struct, frozen=True):
    """A parameter of a function that holds a schedule.

    ``declaration`` is its text as C declares it (``float a[n][n]``); ``array`` is set for arrays, ``type`` for scalars;
    both are ``None`` for one that no schedule can use (a pointer to a structure of several types, say).  Of an array of
    structures, ``structure`` is what C calls their type, empty where that has no tag, and ``members`` are theirs, with
    ``slots`` where they are of several types; the declaration is that of the array of scalars.

    Of a structure, or a pointer to one, ``parts`` are the members that schedules may use, as parameters by names of
    their own; ``text`` is its declaration as it was written, and ``member`` what C calls one of them (``g.nx``), a
    pointer that the function assigns to where it is ``moved``.

    ``pointed`` is what a pointer of unknown extent leads to: of one to structures, rows of ``columns`` elements; there
    are ``least`` so many elements (``x[static 4]``).
    Where schedules ask whether there is an array at all (``if (bias != NULL)``), ``given`` is the integer that says so.
    A pointer is ``nullable`` where the function asks for that anywhere.
    """

    name: str
    declaration: str
    type: ScalarType | None = None
    array: Array | None = None
    const: bool = False
    structure: str = ""
    members: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()
    parts: tuple[FunctionParameter, ...] = ()
    text: str = ""
    member: str = ""
    moved: bool = False
    pointed: ScalarType | None = None
    columns: int = 0
    least: int = 0
    given: FunctionParameter | None = None
    nullable: bool = False


class HostIndex(Struct, frozen=True):
    """The values of an index: ``start``, and so much more in each iteration of some of the access's loops."""

    start: str
    steps: tuple[tuple[int, str], ...] = ()


class HostAccess(Struct, frozen=True):
    """What host code touches: ``name[indices[0]][indices[1]]...``, the rest of the extents as a whole.

    An index that is ``None`` has all values of its extent.  ``trips`` are how often the loops run that indices vary in.
    All texts are C, of 64 bits, whose values hold where the access is announced.  Without a name it is everything that
    there is.  What is written without being read is overwritten as a whole.  Of a ``parameter`` (an array, which C
    passes as a pointer) the size is that of its declaration, of an ``object`` that of C's ``sizeof``; of a ``pointer``
    elements are named, by all indices.

    Two kinds are no accesses: the memory at a pointer is ``freed``; a ``call`` of a function with schedules follows,
    which announces itself what it touches.
    """

    name: str
    kind: Literal["parameter", "object", "pointer", "everything", "freed", "call"]
    indices: tuple[HostIndex | None, ...]
    reads: bool
    writes: bool
    trips: tuple[str, ...] = ()


class HostPlace(Struct, frozen=True):
    """A place of the text, by offsets, in front of which accesses are announced.

    A ``statement`` stands in a block or behind a label, where another one can be put in front of it; one that stands
    ``alone``, as a branch or the body of a loop, takes braces; an ``expression`` is evaluated at that place, perhaps
    many times.
    """

    start: int
    end: int
    kind: Literal["statement", "alone", "expression"]
    accesses: tuple[HostAccess, ...]


class HostArray(Struct, frozen=True):
    """An array that lives in a block of a function; ``declared`` is the offset behind its declaration.

    It is ``fresh`` where nobody has written it then.  So is what malloc gave, behind the statement that sets a pointer
    to it.
    """

    name: str
    declared: int
    fresh: bool = False


class HostAccesses(Struct, frozen=True):
    """All of a function's host code that may touch arrays, and the arrays that end with one of its blocks.

    ``memory`` is what pointers lead to that malloc has just given.
    """

    places: tuple[HostPlace, ...] = ()
    arrays: tuple[HostArray, ...] = ()
    memory: tuple[HostArray, ...] = ()


class Function(Struct, frozen=True):
    """A function that holds at least one schedule, or calls one that does.

    ``span`` runs from its first token to the closing brace; ``returns`` is the text of the return type with its
    specifiers; ``static`` functions have no place in the generated header.  A bare fragment is one synthesised
    function (``fragment`` is true): its span and its body are the whole text; the declarations that became
    parameters are ``dropped``, spans of the text that the host side leaves out.

    ``globals`` are scalars of the file that its schedules, or the extents of what it is given, depend on, and that may
    be assigned.  ``accesses`` are ``None`` where the host code is not known well enough: then arrays stay on the device
    only during the loops of ``TranslationUnit.transfers``.
    """

    name: str
    returns: str
    parameters: tuple[FunctionParameter, ...]
    span: Span
    body: Span
    static: bool = False
    fragment: bool = False
    dropped: tuple[Span, ...] = ()
    accesses: HostAccesses | None = None
    globals: tuple[FunctionParameter, ...] = ()

    @property
    def values(self) -> tuple[FunctionParameter, ...]:
        """The parameters, the members of structures among them that are parameters to schedules, and what is asked.

        What a schedule asks of a pointer, whether it is null, is an integer behind it.
        """
        own = (one for parameter in self.parameters for one in (parameter, *parameter.parts))
        return tuple(each for one in own for each in (one, one.given) if each is not None)


class Transfer(Struct, frozen=True):
    """A stretch of the host text during which arrays may stay on the device; used where ``Function.accesses`` are not.

    ``span`` is a serial loop around one or more schedules whose other code was shown not to touch ``arrays``;
    ``schedules`` are the numbers (from 0, in the file) of the schedules inside it.
    """

    span: Span
    schedules: tuple[int, ...]
    arrays: tuple[str, ...]


class Promise(Struct, frozen=True):
    """The user's word that what the statement at ``span`` touches of ``array`` meets no other iteration's accesses.

    ``pragma`` is where it is given.
    """

    array: str
    span: Span
    pragma: Span


class StatedOrder(Struct, frozen=True):
    """A schedule whose floating-point numbers are added up in another order than its text's.

    Its program does so where the extents of the ``grid``'s loops and of those of ``blocks`` (nests of threads) are
    positive; else the text is what runs.  ``parts`` are arrays of what its blocks have added up, which live until the
    ``last`` of the schedules with this place has added up those.
    """

    grid: tuple[Expr, ...]
    blocks: tuple[tuple[Expr, ...], ...]
    parts: tuple[Array, ...] = ()
    last: bool = True


class Followed(Struct, frozen=True):
    """What the host says of a schedule's ``arrays`` that are endless until their extents follow from accesses.

    ``whole_loops`` are variables of serial loops around it, the innermost first, which count from 0 and run it in each
    iteration, and how many these are.  ``memory`` is how many elements malloc has given to some.  The ``wider`` program
    has all integers that extents may name.  Arrays that the function is given may be ``exchanged`` with others before.
    ``changed`` are integers that it is given and changes before, and where; or, without a place, whose names mean other
    variables there.  ``doubted`` are those that may be changed by what is not known.
    """

    arrays: tuple[str, ...]
    whole_loops: tuple[tuple[str, Expr], ...]
    memory: Mapping[str, Expr]
    wider: Program
    exchanged: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, Span | None]
    doubted: tuple[str, ...]


class Schedule(Struct, frozen=True):
    """One ``meta_schedule``: its number in the file (from 0), where it stands, and its program.

    ``span`` runs from ``meta_schedule`` to its closing brace (or the end of its one statement).  Code that is not known
    may stand before it.  The kernels are right only where ``entry_values``, parameters of the function, still are what
    they were at its beginning, and each of ``sized_arrays`` has the size that its extents say.  ``promises`` are
    about freedom from races where no proof is found.  ``contraction`` is whether the text allows or forbids that sums
    of products are fused, if it says so; where the program is ``contracted``, its text is no longer what it computes,
    nor is it where floating-point numbers are added up in a ``stated_order``.  The word of a ``hidden`` one stands in a
    macro, which is used at ``span``.  ``static_words`` are the ``meta_static`` in front of it, which are no C.
    ``asked`` are integers that say of pointers of the function whether they are not null when the schedule runs;
    ``led`` are rows of its tables of pointers, by their names and as C calls them (``rows[1]``).
    ``directives`` are what ``#pragma metafork schedule`` says in front of it, and where (``metafork.transform``); once
    they are applied, ``written`` is the program before.  ``left_out`` are assertions in it that kernels do not have.
    It stands ``beside`` the one before it where it runs whenever that one does, with the same parameters.  Of some
    arrays the extents are yet to be ``followed``.
    """

    number: int
    function: str
    span: Span
    program: Program
    entry_values: tuple[str, ...] = ()
    sized_arrays: tuple[str, ...] = ()
    promises: tuple[Promise, ...] = ()
    contraction: bool | None = None
    contracted: bool = False
    stated_order: StatedOrder | None = None
    hidden: bool = False
    static_words: Span | None = None
    asked: tuple[tuple[str, str], ...] = ()
    led: tuple[tuple[str, str], ...] = ()
    directives: tuple[str, Span] | None = None
    written: Program | None = None
    left_out: tuple[Span, ...] = ()
    beside: bool = False
    followed: Followed | None = None


class Assumption(Struct, frozen=True):
    """That no macro is called ``name`` in front of the line of the text at ``offset``.

    Where that line only gives a macro an integer unless it has another value, one that has this ``value`` does as well.
    """

    name: str
    offset: int
    value: str = ""


class TranslationUnit(Struct, frozen=True):
    """A whole file.

    ``name`` is the stem that outputs are named after, made a C identifier where it is none; ``headers`` are the paths
    of the input's own headers that were read.  ``callers`` are functions without schedules that call those with
    schedules: where their ``accesses`` are known, arrays may stay on the device while they run.  ``assumptions`` are
    about macros that a compiler's command line might define.  ``warnings`` are about pointers
    of which nobody knows how many elements they lead to.  ``small_floats`` are names of floating types of 16 bits that
    the text uses and does not declare.
    """

    source: Source
    name: str
    functions: tuple[Function, ...]
    schedules: tuple[Schedule, ...]
    transfers: tuple[Transfer, ...]
    headers: tuple[str, ...] = ()
    callers: tuple[Function, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    small_floats: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[tuple[Schedule, ...], ...]:
        """The schedules by where they stand in the file: two of them where the second ends what the first began."""
        found: list[tuple[Schedule, ...]] = []
        place: list[Schedule] = []
        for schedule in self.schedules:
            place.append(schedule)
            if schedule.stated_order is None or schedule.stated_order.last:
                found.append(tuple(place))
                place = []
        return tuple(found)
