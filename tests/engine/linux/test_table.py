"""The table of system calls."""

from pathlib import Path

import pytest

from engine import arch, linux
from engine.linux.table import FAMILIES, SEVERAL, CallTable, family_calls


@pytest.mark.parametrize("family", FAMILIES)
def test_the_list_says_what_the_families_say(family: str) -> None:
    assert FAMILIES[family].split() == list(family_calls(family))


def test_every_family_is_in_the_list() -> None:
    folder = Path(linux.__path__[0])
    found = {
        ".".join(file.relative_to(folder).with_suffix("").parts)
        for file in folder.rglob("*.py")
        if "\nSYSCALLS: SyscallTable = " in file.read_text()
    }
    assert found == set(FAMILIES)


def test_no_call_is_served_twice() -> None:
    names = [name for calls in FAMILIES.values() for name in calls.split()]
    assert len(names) == len(set(names))
    for name in arch.names():
        assert not arch.by_name(name).linux.own_calls.keys() & set(names)


def test_an_architecture_with_one_thread_has_no_calls_for_more() -> None:
    """What cannot be right is missing, and told as missing."""
    making = {name for family in SEVERAL for name in family_calls(family)}
    assert {"clone", "clone3", "fork", "vfork", "unshare", "setns", "execve", "execveat"} == making
    for name in arch.names():
        table = CallTable(arch.by_name(name).linux)
        assert {call for call in making if table[call]} == (set() if name == "ia64" else making)


def test_calls_of_an_architecture_and_missing_ones() -> None:
    linux_of_x86 = arch.by_name("x86_64").linux
    table = CallTable(linux_of_x86)
    own = table["arch_prctl"]
    assert own is not None
    assert (own.arity, own.concerned) == (2, False)
    write = table["write"]
    assert write is not None
    assert (write.arity, write.handler) == (3, family_calls("files")["write"])
    assert table["no_such_call"] is None
    assert CallTable(arch.by_name("aarch64").linux)["arch_prctl"] is None
