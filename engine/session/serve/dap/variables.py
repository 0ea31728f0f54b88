"""Frames, scopes and values as the front end asks for them: by numbers that hold for one stop."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from engine.arch.base import Register
from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.image.scopes import Variable
from engine.language.evaluation import evaluate
from engine.language.values import MemoryPlace, TypedValue
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.output import TROUBLE, message
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.value_lines import ValueLines
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame
from engine.session.serve.dap.bodies import (
    DapScope,
    DapVariable,
    EvaluateBody,
    StackFrame,
    StackTraceBody,
    ValueBody,
)
from engine.session.serve.dap.goroutine_threads import GoroutineThreads
from engine.session.serve.dap.sources import SourceNames

_MOST: Final = 1000
"""Parts of a value that are told at once."""
_GONE: Final = "it is of another stop"
_SIMPLE: Final = re.compile(r"[A-Za-z_$][\w$]*(\.\w+|->\w+|\[\d+\])*")
_FIRST: Final = ("general", "flags")
"""Groups of registers that stand in their scope itself."""
_TITLES: Final = {"system": "System", "vector": "Vector", "float": "Floating point"}


class _FrameKey(Struct, frozen=True):
    """A frame: the editor's number of its thread or goroutine, and its own."""

    thread: int
    number: int


class _Openable(Struct, frozen=True):
    """Something that opens.

    Attributes:
        frame: where it belongs.
        kind: "arguments", "locals", "registers", a group of registers, or "value".
        value: of a value.
        text: the expression that leads to it, "" for none.
    """

    frame: _FrameKey
    kind: str
    value: TypedValue | None = None
    text: str = ""


class ShownValue(Struct, frozen=True):
    """A value in a line.

    Attributes:
        text: the value as it is printed.
        type: its type.
        reference: what is in it can be asked for by that; 0 for nothing.
        memory: where it is, or leads, in memory; "" for nowhere.
        count: parts of an array that has many, else 0.
    """

    text: str
    type: str
    reference: int = 0
    memory: str = ""
    count: int = 0


class StoppedGuest:
    """A standing guest in numbers: they hold until it moves, and none is given twice.

    Attributes:
        goroutines: those of a Go program, as threads.
    """

    def __init__(self, debugger: Debugger, sources: SourceNames, first_line: Callable[[], int]):
        """Nothing has been asked for; `first_line` is the number that lines begin with."""
        self._debugger = debugger
        self.goroutines = GoroutineThreads(debugger)
        self._sources = sources
        self._first_line = first_line
        self._frames: dict[int, _FrameKey] = {}
        self._known: dict[_FrameKey, int] = {}
        self._held: dict[int, _Openable] = {}
        self._last = 0

    def forget(self) -> None:
        """The guest moves."""
        self._frames.clear()
        self._known.clear()
        self._held.clear()

    def _fresh(self) -> int:
        self._last += 1
        return self._last

    # -- frames -----------------------------------------------------------------------------

    def look_at(self, thread: int) -> None:
        """Look at a thread, or at a goroutine that waits.

        Raises:
            CommandError: there is none such.
        """
        debugger = self._debugger
        if thread == self.goroutines.shown:
            return
        if not self.goroutines.look_at(thread):
            if thread not in debugger.control.session.machine.threads:
                raise CommandError(f"there is no thread {thread}")
            debugger.execute(cmd.ChooseThread(thread))
        debugger.frames.moved()

    def stack(self, thread: int, start: int, levels: int) -> StackTraceBody:
        """A part of the stack of a thread; no levels are all of it."""
        self.look_at(thread)
        frames = self._debugger.frames.all
        end = start + levels if levels else len(frames)
        found = [self._frame(thread, at, frames[at]) for at in range(len(frames))[start:end]]
        return StackTraceBody(found, len(frames))

    def _frame(self, thread: int, number: int, frame: GuestFrame) -> StackFrame:
        key = _FrameKey(thread, number)
        if key not in self._known:
            self._known[key] = self._fresh()
            self._frames[self._known[key]] = key
        place = f"{frame.function}+{frame.offset:#x}" if frame.function else f"{frame.pc:#x}"
        name = frame.title if frame.signal or frame.file else place
        known = bool(frame.file and frame.line)
        return StackFrame(
            id=self._known[key],
            name=name or "??",
            line=frame.line - 1 + self._first_line() if known else 0,
            column=self._first_line() if known else 0,
            source=self._sources.source(frame.file) if known else None,
            instruction_pointer_reference=f"{frame.pc:#x}",
            module_id=frame.module,
            presentation_hint="label" if frame.signal else "" if known else "subtle",
        )

    def select(self, frame_id: int) -> int:
        """Look at a frame, with its thread; its number. 0 is the one that is looked at.

        Raises:
            CommandError: it is not of this stop.
        """
        frames = self._debugger.frames
        if not frame_id:
            return frames.selected
        key = self._frames.get(frame_id)
        if key is None:
            raise CommandError(f"frame {frame_id}: {_GONE}")
        return self._select(key)

    def _select(self, key: _FrameKey) -> int:
        self.look_at(key.thread)
        self._debugger.frames.select(key.number)
        return key.number

    @contextmanager
    def _scope(self, frame_id: int) -> Iterator[tuple[_FrameKey, FrameScope]]:
        """A frame, and what names mean there."""
        number = self.select(frame_id)
        key = _FrameKey(self.goroutines.shown, number)
        with self._debugger.control.sight.visit():
            yield key, self._debugger.scope

    # -- scopes -----------------------------------------------------------------------------

    def scopes(self, frame_id: int) -> list[DapScope]:
        """The scopes of a frame."""
        with self._scope(frame_id) as (key, scope):
            found = []
            if scope.scope is not None and scope.scope.parameters:
                reference = self._hold(_Openable(key, "arguments"))
                found.append(
                    DapScope(
                        name="Arguments",
                        variables_reference=reference,
                        expensive=False,
                        presentation_hint="arguments",
                        named_variables=len(scope.scope.parameters),
                    )
                )
            if scope.scope is not None:
                reference = self._hold(_Openable(key, "locals"))
                found.append(
                    DapScope(
                        name="Locals",
                        variables_reference=reference,
                        expensive=False,
                        presentation_hint="locals",
                    )
                )
            found.append(
                DapScope(
                    name="Registers",
                    variables_reference=self._hold(_Openable(key, "registers")),
                    expensive=False,
                    presentation_hint="registers",
                )
            )
            return found

    def _hold(self, held: _Openable) -> int:
        reference = self._fresh()
        self._held[reference] = held
        return reference

    def _opened(self, reference: int) -> _Openable:
        held = self._held.get(reference)
        if held is None:
            raise CommandError(f"variablesReference {reference}: {_GONE}")
        return held

    # -- variables --------------------------------------------------------------------------

    def variables(
        self, reference: int, start: int, count: int, *, kinds: str, as_hex: bool
    ) -> list[DapVariable]:
        """The parts of something.

        Args:
            reference: to it.
            start: number of the first part.
            count: parts at the most, 0 for all.
            kinds: "indexed" or "named" for those alone.
            as_hex: numbers in hexadecimal.
        """
        held = self._opened(reference)
        self._select(held.frame)
        with self._debugger.control.sight.visit():
            scope = self._debugger.scope
            if held.kind == "value":
                return self._parts(held, scope, start, count, kinds, as_hex=as_hex)
            if kinds == "indexed":
                return []
            if held.kind in ("arguments", "locals"):
                found = [
                    self._variable(held.frame, scope, variable.name, value, type_text, as_hex)
                    for variable, value, type_text in _variables(scope, held.kind)
                ]
            else:
                found = list(self._registers(held, scope))
        return found[start : start + count if count else None]

    def _variable(
        self,
        frame: _FrameKey,
        scope: FrameScope,
        text: str,
        value: TypedValue,
        type_text: str = "",
        as_hex: bool = False,
        name: str = "",
    ) -> DapVariable:
        shown = self._shown(frame, scope, text, value, type_text, as_hex=as_hex)
        return DapVariable(
            name=name or text,
            value=shown.text,
            variables_reference=shown.reference,
            type=shown.type,
            evaluate_name=text,
            memory_reference=shown.memory,
            indexed_variables=shown.count,
        )

    def _shown(
        self,
        frame: _FrameKey,
        scope: FrameScope,
        text: str,
        value: TypedValue,
        type_text: str = "",
        *,
        as_hex: bool = False,
    ) -> ShownValue:
        """A value in a line; `text` is the expression that leads to it."""
        lines = ValueLines(scope)
        scalar = value.type.resolved.kind not in (TypeKind.RECORD, TypeKind.ARRAY)
        view = lines.shown(text, value, "x" if as_hex and scalar and not value.missing else "")
        kind = value.type.resolved
        reference = self._hold(_Openable(frame, "value", value, text)) if view.opens else 0
        count = kind.count or 0 if kind.kind is TypeKind.ARRAY else 0
        return ShownValue(
            view.value,
            type_text or view.type,
            reference,
            _memory(value),
            count if view.opens and count > _MOST // 10 else 0,
        )

    def _parts(
        self,
        held: _Openable,
        scope: FrameScope,
        start: int,
        count: int,
        kinds: str,
        *,
        as_hex: bool,
    ) -> list[DapVariable]:
        value = held.value
        assert value is not None
        is_array = value.type.resolved.kind is TypeKind.ARRAY
        if (kinds == "indexed" and not is_array) or (kinds == "named" and is_array):
            return []
        lines = ValueLines(scope)
        wanted = min(count or _MOST, _MOST)
        parts, more = lines.parts(value, start, wanted)
        found = []
        for name, part in parts:
            text = _text_of_part(held.text, value, name)
            shown = self._shown(held.frame, scope, text, part, as_hex=as_hex)
            found.append(
                DapVariable(
                    name=name or "??",
                    value=shown.text,
                    variables_reference=shown.reference,
                    type=shown.type,
                    evaluate_name=text,
                    memory_reference=shown.memory,
                    indexed_variables=shown.count,
                )
            )
        if more and (not count or wanted < count):
            found.append(DapVariable(name="...", value="there are more", variables_reference=0))
        return found

    # -- registers --------------------------------------------------------------------------

    def _registers(self, held: _Openable, scope: FrameScope) -> Iterator[DapVariable]:
        items = self._debugger.control.session.arch.registers
        if held.kind != "registers":
            for item in items:
                if item.group == held.kind:
                    yield self._register(scope, item)
            return
        for item in items:
            if item.group in _FIRST:
                yield self._register(scope, item)
        for group in dict.fromkeys(item.group for item in items if item.group not in _FIRST):
            yield DapVariable(
                name=_TITLES.get(group, group),
                value="",
                variables_reference=self._hold(_Openable(held.frame, group)),
            )

    def _register(self, scope: FrameScope, item: Register) -> DapVariable:
        value = scope.register(item.name)
        if value is None or value.missing:
            text = "<not saved>" if value is None else value.missing
            return DapVariable(name=item.name, value=text, variables_reference=0)
        try:
            number = int.from_bytes(value.raw, scope.order)
        except (CommandError, GuestFaultError) as error:
            return DapVariable(name=item.name, value=f"<{message(error)}>", variables_reference=0)
        text = f"{number:#x}"
        symbol = scope.symbol(number) if item.group == "general" else ""
        if symbol:
            text += f" <{symbol}>"
        if value.label:
            text += f" {value.label}"
        whole = item.group == "general"
        return DapVariable(
            name=item.name,
            value=text,
            variables_reference=0,
            type=value.type.text,
            evaluate_name=f"${item.name}",
            memory_reference=f"{number:#x}" if whole else "",
        )

    # -- expressions ------------------------------------------------------------------------

    def evaluate(self, text: str, frame_id: int, *, as_hex: bool) -> EvaluateBody:
        """The value of an expression in a frame.

        Raises:
            CommandError: it has none.
        """
        with self._scope(frame_id) as (key, scope):
            value = evaluate(text, scope)
            shown = self._shown(key, scope, text, value, as_hex=as_hex)
        return EvaluateBody(
            result=shown.text,
            variables_reference=shown.reference,
            type=shown.type,
            memory_reference=shown.memory,
            indexed_variables=shown.count,
        )

    def place_of(self, reference: int, name: str, frame_id: int) -> tuple[int, int]:
        """Address and size of a part of something, or of an expression.

        Raises:
            CommandError: it is not in memory.
        """
        if reference:
            name = self.text_of(reference, name)
            self._select(self._held[reference].frame)
            frame_id = 0
        with self._scope(frame_id) as (_, scope):
            value = evaluate(name, scope)
            place, size = value.place, value.type.size
        if not isinstance(place, MemoryPlace) or value.missing or not size:
            raise CommandError(f"{name} is not in memory")
        if place.bits:
            raise CommandError(f"{name} is a bit-field")
        return place.address, size

    def text_of(self, reference: int, name: str) -> str:
        """The expression that leads to a part of something, by its name.

        Raises:
            CommandError: none does.
        """
        held = self._opened(reference)
        if held.kind in ("arguments", "locals"):
            return name
        if held.kind != "value" or held.value is None:
            return f"${name}"
        text = _text_of_part(held.text, held.value, name)
        if not text:
            raise CommandError(f"{name}: no expression leads to it")
        return text

    def assign(self, text: str, value: str, frame_id: int, *, as_hex: bool) -> ValueBody:
        """Give what an expression leads to a fresh value.

        Raises:
            CommandError: it takes none.
        """
        with self._scope(frame_id) as (_, scope):
            evaluate(f"{text} = ({value})", scope)
        done = self.evaluate(text, frame_id, as_hex=as_hex)
        if text.startswith("$"):
            with self._scope(frame_id) as (_, scope):
                registers = self._debugger.control.session.arch.registers
                for item in registers:
                    if f"${item.name}" == text:
                        done = EvaluateBody(
                            result=self._register(scope, item).value, variables_reference=0
                        )
        return ValueBody(
            value=done.result,
            variables_reference=done.variables_reference,
            type=done.type,
            memory_reference=done.memory_reference,
            indexed_variables=done.indexed_variables,
        )

    def assign_part(self, reference: int, name: str, value: str, *, as_hex: bool) -> ValueBody:
        """The same for a part of something."""
        text = self.text_of(reference, name)
        self._select(self._held[reference].frame)
        return self.assign(text, value, 0, as_hex=as_hex)


def _variables(scope: FrameScope, kind: str) -> Iterator[tuple[Variable, TypedValue, str]]:
    """The variables of a scope, their values, and their types in words."""
    if scope.scope is None:
        return
    if kind == "arguments":
        items = dict.fromkeys(one for one in scope.scope.parameters if not one.is_unset)
    else:
        named: dict[str, Variable] = {}
        for item in scope.scope.locals:
            if not item.is_declaration:
                named.setdefault(item.name, item)  # one further out is hidden by it
        items = dict.fromkeys(named.values())
    for item in items:
        try:
            text = item.type_text
        except TROUBLE:
            text = "?"
        yield item, scope.of_variable(item), text


def _text_of_part(whole: str, value: TypedValue, name: str) -> str:
    """The expression that leads to a part of a value, "" where none does."""
    if not whole:
        return ""
    base = whole if _SIMPLE.fullmatch(whole) else f"({whole})"
    kind = value.type.resolved
    if kind.kind is TypeKind.POINTER:
        if name == "*":
            return f"*{base}"
        return f"{base}->{name}" if name.isidentifier() else ""
    if kind.kind is TypeKind.ARRAY:
        return f"{base}{name}"
    members = {member.name for member in kind.members}
    return f"{base}.{name}" if name in members and name.isidentifier() else ""


def _memory(value: TypedValue) -> str:
    """The address of a value, or of what it points to; "" for none."""
    if value.missing:
        return ""
    try:
        if value.type.resolved.kind is TypeKind.POINTER:
            return f"{value.number:#x}" if value.number else ""
    except TROUBLE:
        return ""
    return f"{value.address:#x}" if value.address is not None else ""
