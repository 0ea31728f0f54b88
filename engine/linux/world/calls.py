"""The system calls of an architecture, sorted by what becomes of them."""

from typing import NamedTuple, NoReturn

from engine.arch.base import LinuxAbi
from engine.linux.table import FAMILIES, CallTable


class SortedCalls(NamedTuple):
    """System calls of an architecture by name.

    Attributes:
        served: by family, those that are carried out; "own" has what no other architecture has.
        never: those whose handler never succeeds (its type says `NoReturn`), as an unprivileged
            user's under Linux.
        missing: those that return ENOSYS.
    """

    served: dict[str, list[str]]
    never: list[str]
    missing: list[str]


def sort_calls(linux: LinuxAbi) -> SortedCalls:
    """Sort all calls that an architecture's table of numbers names."""
    family_of = {name: family for family, names in FAMILIES.items() for name in names.split()}
    table = CallTable(linux)
    served: dict[str, list[str]] = {family: [] for family in (*FAMILIES, "own")}
    found = SortedCalls(served, [], [])
    for name in sorted(set(linux.syscalls.values())):
        call = table[name]
        if call is None:
            found.missing.append(name)
        elif call.handler.__annotations__.get("return") is NoReturn:
            found.never.append(name)
        else:
            served[family_of.get(name, "own")].append(name)
    return found
