"""Names of Go: types, variables, constants, members and methods (delve's pkg/proc/eval.go)."""

import re
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.dietypes import DieType
from engine.image.gotypes import GoKind, embedded_names
from engine.language import value_types as ct
from engine.language.evaluation import Evaluator
from engine.language.go_parts import GoParts
from engine.language.go_program import CURRENT
from engine.language.go_types import (
    BUILTIN,
    NIL,
    address_text,
    go_text,
    kind_of,
    slice_of,
)
from engine.language.surroundings import Surroundings
from engine.language.syntax import Expression, TypeName
from engine.language.value_types import CType
from engine.language.values import TypedValue

_EMBEDDED: Final = 8
"""Structures embedded in each other that are looked through for a member."""


class GoNames(Evaluator):
    """Finds what names of Go mean in one place."""

    def __init__(self, around: Surroundings) -> None:
        """Evaluate in these surroundings."""
        super().__init__(around)
        self._go_parts = GoParts(around)

    # -- types ------------------------------------------------------------------------------

    def type(self, name: TypeName) -> CType:
        """The type that is written.

        Raises:
            CommandError: there is none such.
        """
        return self._named_type(" ".join(name.words))

    def value_or_type(self, text: str) -> tuple[CType, bool]:
        """The type that a text names, or that of an expression; True if it names one.

        Raises:
            CommandError: it means nothing.
        """
        node = self._around.language.tree(text, self._around)
        found = self._as_type(node)
        return (found, True) if found is not None else (self.value(node).type, False)

    def _named_type(self, text: str, depth: int = 0) -> CType:
        found = self._found_type(text, depth)
        if found is None:
            raise CommandError(f"could not find type {text}")
        return found

    def _found_type(self, text: str, depth: int = 0) -> CType | None:
        """A type by its text; None for no type."""
        text = _spelled(text)
        if depth > 64:
            raise CommandError("the type is nested too deeply")
        go = self._around.go
        if text in BUILTIN:
            # The program's own has constants and a description of the runtime's.
            known = go.named(go_text(BUILTIN[text])) if go is not None else None
            return BUILTIN[text] if known is None else known
        found = go.named(text) if go is not None else None
        if found is not None:
            return found
        if text.startswith("*"):
            return self._pointer_type(text[1:], depth)
        match = re.match(r"\[(\d*)\](.+)", text)
        if match is None:
            return None
        inner = self._found_type(match[2], depth + 1)
        if inner is None:
            return None
        whole = go.named(f"[{match[1]}]{go_text(inner)}") if go is not None else None
        if whole is not None:
            return whole
        return ct.array_of(inner, int(match[1])) if match[1] else slice_of(inner)

    def _pointer_type(self, text: str, depth: int) -> CType | None:
        inner = self._found_type(text, depth + 1)
        return None if inner is None else self._pointer_to(inner)

    def _pointer_to(self, kind: CType) -> CType:
        known = self._around.go.named(f"*{go_text(kind)}") if self._around.go is not None else None
        return ct.pointer_to(kind, self._around.pointer) if known is None else known

    def _as_type(self, node: Expression) -> CType | None:
        """The type that a tree names; None for one that has a value."""
        if node.kind == "gotype":
            return self._named_type(node.text)
        if node.kind == "unary" and node.text == "*":
            inner = self._as_type(node.parts[0])
            return None if inner is None else self._pointer_to(inner)
        name = path_of(node)
        if not name or self._named(name) is not None:
            return None
        return self._found_type(name)

    # -- values -----------------------------------------------------------------------------

    def _made(self, kind: str, number: float) -> TypedValue:
        return self.reach.made(self._named_type(kind), number)

    def _text(self, raw: bytes) -> TypedValue:
        """A text that no memory has."""
        return self._of_bytes(BUILTIN["string"], raw)

    def _named(self, name: str) -> TypedValue | None:
        """A variable, function or constant; None for none."""
        go = self._around.go
        if go is None:
            return self._around.variable(name)
        found = self._around.local(name)
        for spelled in go.spelled(name) if found is None else ():
            constant = go.types.constant(spelled)
            if constant is not None:
                return self.reach.made(constant.type, constant.value)
            found = self._around.variable(spelled)
            if found is not None:
                break
        return found

    def _name(self, name: str) -> TypedValue:
        found = self._named(name)
        if found is not None:
            return found
        if name == "nil":
            return self._of_bytes(NIL, b"")
        raise CommandError(f"could not find symbol value for {name}")

    # -- members ----------------------------------------------------------------------------

    def _member(self, node: Expression) -> TypedValue:
        """A member of a structure, or a thing of a package."""
        path = path_of(node)
        first = path.partition(".")[0]
        if path and not self._hides_package(first):
            found = self._current_goroutine() if path == CURRENT else self._named(path)
            if found is not None:
                return found
            if self._is_package(first):
                raise CommandError(f"could not find symbol value for {path}")
        base = self.value(node.parts[0])
        found = self._field(base, node.text, 0)
        if found is not None:
            return found
        if kind_of(base.type) == GoKind.INTERFACE:
            inside = self._go_parts.concrete(base)
            found = None if inside is None else self._field(inside, node.text, 0)
            if found is not None:
                return found
        method = self._method_of(base.type, node.text)
        if method is not None:
            return method
        raise CommandError(f"{go_text(base.type)} has no member {node.text}")

    def _is_package(self, name: str) -> bool:
        go = self._around.go
        return go is not None and any(one.rpartition("/")[2] == name for one in go.types.packages)

    def _current_goroutine(self) -> TypedValue:
        """The runtime's structure of the goroutine whose frame is looked at."""
        go = self._around.go
        address = 0 if go is None else go.goroutine()
        if not address:
            raise CommandError("no goroutine runs here")
        kind = self._pointer_to(self._named_type("runtime.g"))
        found = self.reach.made(kind, address)
        return replace(found, label=address_text(go_text(kind), address))

    def _hides_package(self, name: str) -> bool:
        """True if a name is that of a variable, which is meant before a package is."""
        go = self._around.go
        if self._around.local(name) is not None or go is None:
            return True
        found = self._around.variable(f"{go.package}.{name}")
        return found is not None and found.type.resolved.kind is not TypeKind.FUNCTION

    def _field(self, base: TypedValue, name: str, depth: int) -> TypedValue | None:
        """A member, one of an embedded structure's too; None for none."""
        if kind_of(base.type) == GoKind.POINTER:
            if not base.missing and not base.number:
                raise CommandError("nil pointer dereference")
            base = self._pointed(base)
        if kind_of(base.type) == GoKind.CHAN and any(base.raw):
            return dict(self._go_parts.channel(base)).get(name)
        if kind_of(base.type) != GoKind.STRUCT and not base.type.resolved.members:
            return None
        members = base.type.resolved.members
        for member in members:
            if member.name == name:
                return self.reach.part(base, member)
        inner = embedded_names(base.type) if isinstance(base.type, DieType) else frozenset()
        for member in members if depth < _EMBEDDED else ():
            if member.name in inner:
                part = self.reach.part(base, member)
                is_pointer = kind_of(part.type) == GoKind.POINTER and not part.missing
                is_nil = is_pointer and not part.number
                found = None if is_nil else self._field(part, name, depth + 1)
                if found is not None:
                    return found
                if is_nil and self._has_field(part.type.resolved.target, name, depth + 1):
                    raise CommandError(f"{member.name} is nil")
        return None

    def _pointed(self, base: TypedValue) -> TypedValue:
        """Follow a pointer; a lost one leads to a lost value."""
        if base.missing and kind_of(base.type) == GoKind.POINTER:
            return self._lost(base.type.resolved.target, base)
        return self.reach.pointed(base)

    @staticmethod
    def _lost(kind: CType, value: TypedValue) -> TypedValue:
        """A value that would be found by another one, which is lost."""
        return replace(value, type=kind, place=None, label="", pieces=(), _raw=None)

    def _has_field(self, kind: CType, name: str, depth: int) -> bool:
        """True if a structure has a member, or one that is embedded in it."""
        kind = kind.resolved.target if kind_of(kind) == GoKind.POINTER else kind
        if kind_of(kind) != GoKind.STRUCT or depth > _EMBEDDED:
            return False
        inner = embedded_names(kind) if isinstance(kind, DieType) else frozenset()
        return any(
            one.name == name or (one.name in inner and self._has_field(one.type, name, depth + 1))
            for one in kind.resolved.members
        )

    def _method_of(self, kind: CType, name: str, depth: int = 0) -> TypedValue | None:
        """The function behind a method, one of an embedded structure's too; None for none."""
        if kind_of(kind) == GoKind.POINTER:
            kind = kind.resolved.target
        found = self._own_method(kind, name)
        inner = embedded_names(kind) if isinstance(kind, DieType) else frozenset()
        for member in kind.resolved.members if found is None and depth < _EMBEDDED else ():
            if member.name in inner:
                found = self._method_of(member.type, name, depth + 1)
                if found is not None:
                    break
        return found

    def _own_method(self, kind: CType, name: str) -> TypedValue | None:
        package, dot, bare = go_text(kind).rpartition(".")
        if not dot:
            return None
        for spelled in (f"{package}.{bare}.{name}", f"{package}.(*{bare}).{name}"):
            found = self._around.variable(spelled)
            if found is not None:
                return found
        return None


def path_of(node: Expression) -> str:
    """The name that a tree is, with its package; "" for what is none."""
    if node.kind == "name":
        return node.text
    if node.kind == "member" and node.parts[0].kind == "name":
        return f"{node.parts[0].text}.{node.text}"
    return ""


def _spelled(text: str) -> str:
    """A type's text as the compiler writes it."""
    text = re.sub(r"\s+", " ", text.strip()).replace('"', "")
    text = re.sub(r"\b(interface|struct) ?\{ ?\}", r"\1 {}", text)
    text = re.sub(r"\bany\b(?!\.)", "interface {}", text)
    text = re.sub(r"(?<![\w.])byte\b", "uint8", text)
    text = re.sub(r"(?<![\w.])rune\b", "int32", text)
    return re.sub(r"\* ", "*", re.sub(r"\] ", "]", text)).removeprefix("(").strip()
