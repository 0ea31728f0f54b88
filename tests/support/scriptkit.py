"""Surroundings of bpftrace scripts without a guest: types from a text of C, places from tables."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

from msgspec import Struct, field

from engine.image.datatypes import DataType
from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.c_types import enumeration
from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.checking import check
from engine.trace.bpftrace.parser import parse
from engine.trace.bpftrace.text import ScriptText, Span
from engine.trace.bpftrace.tree import AttachPoint, WrittenType
from engine.trace.bpftrace.type_lookup import ScriptTypes, TypeLookup
from engine.trace.bpftrace.types import Enumeration, Type

X86_64 = (
    *("r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si"),
    *("di", "orig_ax", "ip", "cs", "flags", "sp", "ss"),
)

KERNEL_TYPES = """
struct path { void *mnt; void *dentry; };
struct file { int ino; struct path f_path; };
struct task_struct {
    int pid; int pgid; char comm[16];
    struct task_struct *real_parent; struct task_struct *group_leader;
};
struct sock { int cookie; unsigned char skc_daddr[16]; };
enum colour { RED = 1, GREEN = 2 };
typedef unsigned long size_t;
"""

ARGUMENTS = {
    "tracepoint:syscalls:sys_enter_openat": {
        "dfd": "long",
        "filename": "char *",
        "flags": "long",
    },
    "tracepoint:syscalls:sys_exit_openat": {"ret": "long"},
    "tracepoint:sched:sched_switch": {"prev_comm": "char[16]", "prev_pid": "int"},
    "fentry:tcp_shutdown": {"sk": "struct sock *", "how": "int"},
    "fexit:tcp_shutdown": {"sk": "struct sock *", "how": "int"},
    "uprobe:/bin/app:work": {"count": "int", "name": "char *"},
}

RETURNS = {"fexit:tcp_shutdown": "int"}


class PlainSurroundings(Struct):
    """What a script can know of a guest that is made of tables.

    Attributes:
        definitions: the types of C that are known.
        members: of `args`, by the place; a type as C writes it.
        results: types of `retval`, by the place.
        globs: places that a place with a glob stands for.
        refused: providers that are not there, and what to say of them.
        registers: names for `reg()`.
        pointer_size: bytes of an address.
        aligns_unnamed: bitfields without a name align structures.
        symbols: that are there; None for any.
    """

    definitions: CDefinitions
    members: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: ARGUMENTS)
    results: Mapping[str, str] = field(default_factory=lambda: RETURNS)
    globs: Mapping[str, Sequence[str]] = {}
    refused: Mapping[str, str] = {}
    registers: Sequence[str] = X86_64
    pointer_size: int = 8
    aligns_unnamed: bool = False
    symbols: Sequence[str] | None = None

    def struct(self, name: str) -> DataType | None:
        return self.definitions.struct(name)

    def typedef(self, name: str) -> DataType | None:
        return self.definitions.typedef(name)

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        found = self.definitions.enumerator(name)
        return None if found is None else (found[0], enumeration(found[1]))

    def places(self, point: AttachPoint) -> Sequence[AttachPoint]:
        texts = self.globs.get(point.text)
        if texts is None:
            return [point]
        return [
            AttachPoint(point.span, text, point.provider, tuple(text.split(":")[1:]))
            for text in texts
        ]

    def arguments(self, point: AttachPoint) -> Mapping[str, Type] | None:
        members = self.members.get(":".join((point.provider, *point.parts)))
        if members is None:
            return None
        return {name: self._type(text) for name, text in members.items()}

    def usdt_arguments(self, point: AttachPoint) -> Sequence[Type] | None:
        members = self.members.get(":".join((point.provider, *point.parts)))
        return None if members is None else [self._type(text) for text in members.values()]

    def returns(self, point: AttachPoint) -> Type | None:
        text = self.results.get(":".join((point.provider, *point.parts)))
        return None if text is None else self._type(text)

    def symbol_size(self, name: str, point: AttachPoint, kernel: bool) -> int | None:
        return 8 if self.symbols is None or name in self.symbols else None

    def provides(self, what: str) -> str | None:
        return self.refused.get(what)

    def _type(self, text: str) -> Type:
        name, stars = text.rstrip("* ").partition("[")[0], text.count("*")
        suffixes: list[Literal["*"] | int | None] = ["*"] * stars
        if "[" in text:
            suffixes += [int(text.partition("[")[2].rstrip("]"))]
        lookup = TypeLookup((ScriptTypes(self.definitions),), self.pointer_size)
        found = lookup.written(WrittenType(Span(0, 0), name, tuple(suffixes)), "user")
        assert found is not None, text
        return found


@cache
def definitions(text: str = KERNEL_TYPES) -> CDefinitions:
    """Types of C from a text."""
    script = ScriptText("types.h", f"{text}\nbegin {{ }}")
    return CDefinitions.of(parse(script).definitions, script)


def checked(
    text: str,
    *parameters: str,
    surroundings: PlainSurroundings | None = None,
    environment: Mapping[str, str] | None = None,
    name: str = "stdin",
) -> CheckedScript:
    """A script that was read and checked."""
    script = ScriptText(name, text)
    return check(
        parse(script, parameters),
        script,
        surroundings or PlainSurroundings(definitions()),
        parameters,
        environment or {},
    )
