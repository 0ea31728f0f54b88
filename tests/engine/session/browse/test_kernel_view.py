"""What a kernel image's own kernel says, as an interface shows it."""

from functools import cache
from typing import NoReturn

import pytest
from kernelimages import AMD64_61, image_path

from engine.session.browse import kernel_view
from engine.session.browse.browser import Browser
from engine.session.browse.kernel_view import KernelAnswer, KernelBrowser
from engine.session.protocol.config import GuestConfig


@cache
def browser() -> Browser:
    return Browser(GuestConfig(str(image_path(AMD64_61))))


def kernel() -> KernelBrowser:
    found = browser().kernel
    assert found is not None
    return found


def place(name: str, offset: int = 0) -> int:
    return browser().verdicts.places.resolve(name)[0].link + offset


def answer(name: str, offset: int = 0) -> KernelAnswer:
    found = kernel().answer(place(name, offset))
    assert found is not None
    return found


def test_a_place_is_answered_rule_by_rule() -> None:
    entry = answer("vfs_read")
    assert (entry.kernel, entry.kind, entry.errno) == ("Linux 6.1.192", "ftrace", "")
    assert all(check.ok for check in entry.checks)
    assert [check.rule for check in entry.checks][:3] == [
        "kernel.notrace",
        "kernel.text",
        "kernel.blacklist",
    ]
    inside = answer("vfs_read", 1)
    assert (inside.kind, inside.errno) == ("", "EILSEQ")
    assert [check.ok for check in inside.checks] == [*[True] * 6, False]
    assert inside.checks[-1].rule == "kernel.boundary"
    refused = answer("do_int3")
    assert refused.errno == "EINVAL"
    assert not refused.checks[-1].ok
    assert kernel().answer(0x1000) is None


def test_a_breakpoint_that_stays_says_why() -> None:
    found = next(
        one for offset in range(5, 200) if (one := answer("vfs_read", offset)).kind == "breakpoint"
    )
    last = found.checks[-1]
    assert not last.ok
    assert last.detail.startswith("no jump: ")


def test_definitions_are_judged_by_both() -> None:
    verdict = browser().check("p vfs_read+0 a=$arg1")
    assert verdict.ok
    assert verdict.text.startswith("Linux 6.1.192: ftrace, on ftrace's site")
    later = browser().check("p vfs_read file")
    assert later.ok
    assert later.text.startswith("Linux 6.1.192 refuses it (EINVAL): ")
    assert later.column == len("p vfs_read ")


def test_code_shows_what_boot_has_changed() -> None:
    start = place("vfs_read")
    was = kernel().before_boot(start, start + 5)
    assert list(was) == [start]
    assert was[start].startswith("e8 ")
    assert was[start].endswith("(ftrace nop)")
    assert kernel().exported(["p:m/r vfs_read a=$arg1"], "perf") == [
        "perf probe 'm:r=vfs_read a=$arg1'"
    ]


def test_code_that_boot_leaves_alone_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*given: object) -> NoReturn:
        raise AssertionError("nothing is patched there")

    start = place("vfs_read")
    assert kernel().before_boot(start + 20, start + 25) == {}
    monkeypatch.setattr(kernel_view, "patched_rows", compared)
    assert kernel().before_boot(start + 20, start + 25) == {}
    with pytest.raises(AssertionError):
        kernel().before_boot(start, start + 5)
