"""Events of kernels, line by line, against what these kernels answered."""

import copy
import errno
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from kernelkit import DATA, KERNELS, GoldenKernel, golden_kernel, golden_rows

from engine.errors import ProbeSyntaxError
from engine.fetch.era import Version, era_of
from engine.trace.kprobe_events import DYNAMIC_EVENTS, KPROBE_EVENTS, KprobeEvents, Outcome

_HASHED = re.compile(r"0x[0-9a-f]{16}")
_BY_PLACE = ("Failed to register probe event", "Probe point is not an instruction boundary")


@pytest.fixture
def old() -> GoldenKernel:
    return _ready("amd64-6.1")


@pytest.fixture
def new() -> GoldenKernel:
    return _ready("amd64-6.12")


def _ready(name: str) -> GoldenKernel:
    kernel = golden_kernel(name)
    kernel.refusal, kernel.traceable = "", True
    return kernel


def _answer(outcome: Outcome) -> tuple[object, ...]:
    # Addresses are shown hashed, with a key of each boot.
    shown = _HASHED.sub("0xHASHED", outcome.shown)
    return outcome.rc, outcome.text, outcome.column, shown, outcome.format


def _recorded(row: dict[str, Any]) -> tuple[object, ...]:
    shown = _HASHED.sub("0xHASHED", row.get("shown", ""))
    return row["rc"], row.get("err"), row.get("col"), shown, row.get("format")


def _set_place(kernel: GoldenKernel, row: dict[str, Any]) -> None:
    """Whether a probe may stand at the place is the row's: others find that out."""
    kernel.refusal = errno.errorcode[-row["rc"]] if row.get("err") in _BY_PLACE else ""


@pytest.mark.parametrize("name", KERNELS)
def test_lines_are_answered_as_the_kernel_does(name: str) -> None:
    kernel = _ready(name)
    wrong = []
    for row in golden_rows(name, "definitions"):
        _set_place(kernel, row)
        answer = _answer(KprobeEvents(kernel).take(row["line"]))
        if answer != _recorded(row):
            wrong.append((row["line"], _recorded(row), answer))
    assert wrong == []


@pytest.mark.parametrize("name", KERNELS)
def test_lines_are_answered_after_others(name: str) -> None:
    kernel = _ready(name)
    for row in golden_rows(name, "definitions_state"):
        events = KprobeEvents(kernel)
        for line in row["state_before"]:
            assert events.take(line).rc == 0
        assert _answer(events.take(row["line"])) == _recorded(row)


@pytest.mark.parametrize("kind", ["entries", "kretprobes"])
@pytest.mark.parametrize("name", KERNELS)
def test_symbols_are_found_as_the_kernel_finds_them(name: str, kind: str) -> None:
    kernel = _ready(name)
    for row in golden_rows(name, kind):
        _set_place(kernel, row)
        head = f"{row['def']}:golden/e"
        outcome = KprobeEvents(kernel).take(f"{head} {row['sym']}")
        assert (outcome.rc, outcome.text) == (row["rc"], row.get("err")), row["sym"]
        if "Maxactive" not in (outcome.text or "") and "maxactive" not in (outcome.text or ""):
            column = None if outcome.column is None else outcome.column - len(head) - 1
            assert column == row.get("col")


def test_a_place_that_no_symbol_covers_waits(old: GoldenKernel) -> None:
    events = KprobeEvents(old)
    for line in ("p:d/a 0x1000", "r:d/b 0x1000", "p:d/c nosuch:foo+4", "p:d/d 0x1000 a=@nosuch"):
        outcome = events.take(line)
        assert (outcome.rc, outcome.address) == (0, None), line
    assert "r:d/b 0x" in events.listing(), "it has no instances yet"
    assert events.take("p 0").text == "Failed to register probe event"
    assert events.take("p vfs_read a=@nosuch").rc == -errno.ENOENT


def test_probes_by_address_are_all_the_same_to_the_kernel(old: GoldenKernel) -> None:
    events = KprobeEvents(old)
    assert events.take("p:d/a 0x1000").rc == 0
    outcome = events.take("p:d/a 0x2000")
    assert (outcome.rc, outcome.text) == (
        -errno.EEXIST,
        "There is already the exact same probe event",
    )


def test_notrace_comes_before_symbols_that_are_missing(old: GoldenKernel) -> None:
    old.traceable = False
    outcome = KprobeEvents(old).take("p vfs_read a=@nosuch")
    assert (outcome.rc, outcome.text) == (-errno.EINVAL, "Failed to register probe event")


def test_a_refusal_without_words_has_no_caret(old: GoldenKernel) -> None:
    outcome = KprobeEvents(old).take("p vfs_read a=$comm:u8")
    assert (outcome.rc, outcome.text, outcome.column) == (-errno.EINVAL, None, None)
    assert outcome.error is not None


def test_an_event_of_the_kernel_is_not_taken_over(new: GoldenKernel) -> None:
    outcome = KprobeEvents(new).take("p:sched/sched_switch vfs_read")
    assert (outcome.rc, outcome.column) == (-errno.EEXIST, 0)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("f vfs_read $arg*", "f:fprobes/vfs_read__entry vfs_read file=file buf=buf count=count"),
        ("f vfs_read%return $retval", "f:fprobes/vfs_read__exit vfs_read%return arg1=$retval"),
        ("f vfs_read a=$retval", "f:fprobes/vfs_read__exit vfs_read%return a=$retval"),
        ("f5:g/e vfs_read%return", "f5:g/e vfs_read%return"),
        ("f:g/e vfs_read count", "f:g/e vfs_read count=count"),
    ],
)
def test_functions_have_events_of_their_own(new: GoldenKernel, line: str, shown: str) -> None:
    events = KprobeEvents(new)
    outcome = events.take(line, DYNAMIC_EVENTS)
    assert outcome.rc == 0, outcome.error
    assert outcome.shown.startswith(shown)
    assert events.listing() == "", "they are none of kprobe_events"
    assert events.take("-:" + shown.split()[0].partition(":")[2]).rc == -errno.ENOENT
    assert events.take("-:" + shown.split()[0].partition(":")[2], DYNAMIC_EVENTS).rc == 0


@pytest.mark.parametrize(
    ("line", "text", "column"),
    [
        ("f5:g/e vfs_read", "Maxactive is only for function exit", 1),
        ("f0:g/e vfs_read%return", "Invalid maxactive number", 1),
        ("f:g/e vfs_read%x", "Invalid probed address suffix", 14),
        ("f:g/e nosuch", "Failed to register probe event", 6),
        ("f:g/e vfs_read %di", "Invalid $-variable specified", 15),
        ("f:g/e vfs_read nosuch", "This variable is not found at this probe point", 15),
        ("t:g/e sched_switch a=$retval", "$retval is not available on probe", 21),
        ("t:g/e sched_switch%return", "Invalid probed address suffix", 18),
    ],
)
def test_their_errors(new: GoldenKernel, line: str, text: str, column: int) -> None:
    outcome = KprobeEvents(new).take(line, DYNAMIC_EVENTS)
    assert (outcome.text, outcome.column) == (text, column)


def test_earlier_kernels_have_no_events_of_functions(old: GoldenKernel) -> None:
    assert KprobeEvents(old).take("f vfs_read", DYNAMIC_EVENTS).rc == -errno.EINVAL


_PIECES = (
    *("$arg*", "$arg1", "$retval", "->", ".", "file", "count", "$comm", ":string", ":ustring"),
    *(":symstr", "[4]", ":b1@2/8", ":%pd", "%return", "+0(", ")", '\\"x"', "@jiffies", " ", "-"),
    *("vfs_read", "dget_parent", "9p:", "0x10000000000000000", "f:", "t:", "r5", "\0", "é", "#"),
)


@pytest.mark.parametrize("name", KERNELS)
def test_any_line_has_an_answer_and_what_is_read_back_is_taken_again(name: str) -> None:
    kernel = _ready(name)
    chance = random.Random(name)
    lines = [row["line"][:200] for row in golden_rows(name, "definitions")]
    taken = 0
    for _ in range(4000):
        line = chance.choice(lines)
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(line) + 1)
            line = line[:at] + chance.choice(_PIECES) + line[at + chance.randrange(4) :]
        outcome = KprobeEvents(kernel).take(line, chance.choice((KPROBE_EVENTS, DYNAMIC_EVENTS)))
        assert (outcome.rc == 0) == (outcome.error is None)
        definition = outcome.definition
        if definition is None or definition.kind != "kprobe" or _HASHED.search(outcome.shown):
            continue
        assert KprobeEvents(kernel).take(outcome.shown).shown == outcome.shown
        taken += 1
    assert taken > 500


def test_events_of_two_kinds_do_not_share_a_name(new: GoldenKernel) -> None:
    events = KprobeEvents(new)
    assert events.take("p:g/e vfs_read", DYNAMIC_EVENTS).rc == 0
    outcome = events.take("f:g/e vfs_read", DYNAMIC_EVENTS)
    assert outcome.text == "Given group/event name is already used by another event"


WRITTEN = [json.loads(line) for line in (DATA / "written-6.12.jsonl").read_text().splitlines()]
"""Lines that were written to both files of Debian's Linux 6.12.117, and its answers."""


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: f"{row['file'][:1]}: {row['line']}")
def test_a_line_is_answered_as_linux_6_12_has_answered_it(
    new: GoldenKernel, row: dict[str, Any]
) -> None:
    outcome = KprobeEvents(new).take(row["line"], row["file"])
    wanted = -getattr(errno, row["errno"]) if row["errno"] else 0
    assert (outcome.rc, outcome.text, outcome.column) == (
        wanted,
        row.get("error"),
        row.get("column"),
    )
    if "error" in row:
        assert isinstance(outcome.error, ProbeSyntaxError)
        assert outcome.error.command == row.get("command", row["line"])


@pytest.mark.parametrize("version", [(6, 13, 0), (6, 14, 0), (7, 3, 0)])
def test_functions_have_no_maxactive_since_6_14(
    new: GoldenKernel, monkeypatch: pytest.MonkeyPatch, version: Version
) -> None:
    """As "tracing/fprobe: Remove nr_maxactive from fprobe" (a2224559cbba) has it."""
    monkeypatch.setattr(GoldenKernel, "era", era_of(version))
    for line in ("f5:g/e vfs_read%return", "fx:g/e vfs_read", "t0 sched_switch"):
        outcome = KprobeEvents(new).take(line, DYNAMIC_EVENTS)
        if version >= (6, 14, 0):
            assert (outcome.text, outcome.column) == ("Invalid maxactive number", 1)
        elif line[1] != "0":
            assert outcome.rc == 0
    assert KprobeEvents(new).take("f:g/e vfs_read%return", DYNAMIC_EVENTS).rc == 0
    assert KprobeEvents(new).take("r5:g/e vfs_read").rc == 0


@pytest.mark.parametrize("version", [(6, 18, 0), (6, 19, 0), (7, 0, 0)])
@pytest.mark.parametrize(
    ("line", "unclaimed"),
    [
        ("z hoge", True),
        ("  z   hoge  ", True),
        ("p", True),
        ("f", True),
        ("e", True),
        ("s", True),
        ("p /bin/sh:main", True),
        ("p /bin/sh:0x10", False),
        ("e sched/sched_switch", False),
        ("s:one int two", False),
    ],
)
def test_unknown_types_have_a_text_since_6_19(
    new: GoldenKernel,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    unclaimed: bool,
    version: Version,
) -> None:
    """As create_dyn_event has it ("tracing: Report wrong dynamic event command").

    Linux 6.18.44 was asked: it writes nothing for `z hoge` and `p`.
    """
    monkeypatch.setattr(GoldenKernel, "era", era_of(version))
    outcome = KprobeEvents(new).take(line, DYNAMIC_EVENTS)
    said = unclaimed and version >= (6, 19, 0)
    assert outcome.rc == -errno.EINVAL
    assert outcome.text == ("No matching dynamic event type" if said else None)
    if said:
        assert isinstance(outcome.error, ProbeSyntaxError)
        assert (outcome.error.subsystem, outcome.column) == ("dynevent", 0)
    assert KprobeEvents(new).take(line).text is None, "kprobe_events says nothing"


def test_functions_that_are_not_there_are_sought_first_since_6_14(
    new: GoldenKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ip_list_from_filter and trace_fprobe_create_internal of Linux 7.2.13 have it."""
    untraced = copy.copy(new)
    untraced.traceable = False
    for version, text in (
        ((6, 12, 0), "Failed to register probe event"),
        ((6, 14, 0), "Invalid probed address or symbol"),
    ):
        monkeypatch.setattr(GoldenKernel, "era", era_of(version))
        for kernel, line in ((new, "f:g/e nosuch"), (untraced, "f:g/e vfs_read")):
            outcome = KprobeEvents(kernel).take(line, DYNAMIC_EVENTS)
            assert (outcome.rc, outcome.text, outcome.column) == (-errno.EINVAL, text, 6)


@pytest.mark.parametrize("version", [(6, 12, 0), (7, 0, 0), (7, 1, 0)])
def test_a_symbol_of_the_kernel_is_unique_beside_a_module_s_since_7_1(
    new: GoldenKernel, monkeypatch: pytest.MonkeyPatch, version: Version
) -> None:
    """As "bpf: Prefer vmlinux symbols over module symbols" (1870ddcd94b0) has it."""
    monkeypatch.setattr(GoldenKernel, "era", era_of(version))
    addresses = GoldenKernel.addresses

    def shared(self: GoldenKernel, name: str, module: str | None) -> Sequence[int]:
        return (*addresses(self, name, module), *((0xFFFFFFFFC0001000,) if module is None else ()))

    monkeypatch.setattr(GoldenKernel, "addresses", shared)
    outcome = KprobeEvents(new).take("p vfs_read")
    assert outcome.text == (None if version >= (7, 1, 0) else "The symbol is not unique")


def test_a_tracepoint_had_to_be_there_before_6_12(
    new: GoldenKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KprobeEvents(new).take("t:g/e nosuch", DYNAMIC_EVENTS).rc == 0
    monkeypatch.setattr(GoldenKernel, "era", era_of((6, 11, 0)))
    outcome = KprobeEvents(new).take("t:g/e nosuch", DYNAMIC_EVENTS)
    assert (outcome.text, outcome.column) == ("Tracepoint is not found", 6)
