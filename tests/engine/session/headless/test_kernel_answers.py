"""The kernel's own answers: what its files say, and that ours are the same."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom

import pytest
from freshdefinitions import fresh_definitions
from kernelimages import AMD64_61, AMD64_612, GOLDEN, image_path, kernel_image
from kernelkit import golden_rows

from engine.cpu import native
from engine.errors import CommandError, CutOff
from engine.image.kernel.imagecache import cache_folder
from engine.machine.agent import TRUNCATE, FileAnswer, FileRequest, reading, sleeping, writing
from engine.session.headless import kernel_answers
from engine.session.headless.agent_machine import AgentMachine, AgentRequest
from engine.session.headless.kernel_answers import (
    AskedAnswer,
    AskedRow,
    answered,
    ask_kernel,
    differing,
)
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import KernelRow, error_name
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import KernelChoice
from engine.session.protocol.requests import CheckRequest
from engine.trace.kprobe_events import KPROBE_EVENTS

boots = pytest.mark.skipif(not native.possible(), reason="boots on x86-64 hosts only")
KERNELS = (AMD64_61, AMD64_612)
TRACING = "/sys/kernel/tracing"
LIST = "/sys/kernel/debug/kprobes/list"
FRESH = "KPROBE_TUI_FRESH_DEFINITIONS"
"""Environment variable with the number of fresh definitions that each kernel is asked."""


def asked(image: Path, *lines: str, choice: KernelChoice | None = None) -> list[AskedRow]:
    config = GuestConfig(guest=str(image), kernel=choice or KernelChoice())
    return ask_kernel(CheckRequest(config, lines), "", None).rows


def told(rows: Sequence[AskedRow]) -> list[tuple[str | None, tuple[str, ...], AskedAnswer]]:
    """The rows in which the kernel's answer is another one."""
    return [(each.row.line, each.differences, each.answer) for each in rows if each.differences]


# -- without a machine -----------------------------------------------------------------


class Scripted(AgentMachine):
    """A machine that answers what a test says."""

    def __init__(self, *scripts: list[FileAnswer]) -> None:
        self.scripts = list(scripts)
        self.asked: list[Sequence[FileRequest]] = []

    def ask(self, requests: Sequence[FileRequest]) -> list[FileAnswer]:
        self.asked.append(requests)
        return self.scripts.pop(0) if self.scripts else [FileAnswer(0)] * len(requests)


SKIPPED = FileAnswer(None)
LOG = b"""[    1.262670] trace_kprobe: error: Invalid probed address or symbol
  Command: p vfs_readx a=%ax
             ^
"""


def test_a_refusal_is_read_from_error_log() -> None:
    machine = Scripted(
        [FileAnswer(-2), SKIPPED, SKIPPED, FileAnswer(0, LOG), SKIPPED, SKIPPED, FileAnswer(0)]
    )
    (answer,) = answered(machine, ["p vfs_readx a=%ax"], [""], file=KPROBE_EVENTS, sequence=False)
    text = "Invalid probed address or symbol"
    assert answer == AskedAnswer("ENOENT", text, "p vfs_readx a=%ax", 2)


def test_a_refusal_without_an_entry_has_its_number_alone() -> None:
    for log in (b"", b"noise\n", LOG[:30]):
        script = [
            FileAnswer(-22),
            SKIPPED,
            SKIPPED,
            FileAnswer(0, log),
            SKIPPED,
            SKIPPED,
            FileAnswer(0),
        ]
        (answer,) = answered(Scripted(script), ["p"], [""], file=KPROBE_EVENTS, sequence=False)
        assert answer == AskedAnswer("EINVAL")


def test_a_site_of_ftrace_need_not_be_enabled() -> None:
    listed = b"ffffffff81367160  k  vfs_write+0x0    [DISABLED][FTRACE]\n"
    shape = b"name: e\nID: 1234\nformat:\n"
    line = b"p:g/e vfs_write\n"
    machine = Scripted(
        [
            *(
                FileAnswer(16),
                FileAnswer(0, line),
                FileAnswer(0, shape),
                SKIPPED,
                FileAnswer(0, listed),
            ),
            *(FileAnswer(0), SKIPPED),
        ]
    )
    (answer,) = answered(
        machine, ["p:g/e vfs_write"], [line.decode()], file=KPROBE_EVENTS, sequence=False
    )
    assert (answer.address, answer.flags) == (0xFFFFFFFF81367160, ("FTRACE",))
    assert (answer.ftrace, answer.optimized) == (True, False)
    assert answer.format == "name: e\nID: N\nformat:\n"
    assert len(machine.asked) == 1


def test_neighbours_are_not_enabled_together() -> None:
    places = [("p", 0x1000), ("p", 0x1010), ("p", 0x2000), ("r", 0x1000)]
    batches = list(kernel_answers._batches(places))
    assert batches == [[("p", 0x1000), ("p", 0x2000)], [("p", 0x1010)], [("r", 0x1000)]]
    many = [("p", 0x1000 * number) for number in range(250)]
    assert [len(batch) for batch in kernel_answers._batches(many)] == [100, 100, 50]


def row(errno: str = "", shown: str = "p:a/b f\n") -> KernelRow:
    place = (0x1000, "f", 0)
    return KernelRow(*place, "6.1.0", "jump", "", "", errno, line="p f", shown=shown)


@pytest.mark.parametrize(
    ("verdict", "answer", "found"),
    [
        (row(), AskedAnswer("", shown="p:a/b f\n", address=0x1000, flags=("OPTIMIZED",)), []),
        (row(), AskedAnswer("EINVAL"), ["accepted"]),
        (row(), AskedAnswer("", shown="p:a/b f\n", address=0x1000, flags=()), ["optimized"]),
        (row(), AskedAnswer("", shown="p:a/b g\n", address=0x2000), ["shown", "address"]),
        (
            row(shown="p:a/b 0x00000000fa2efa93\n"),
            AskedAnswer("", shown="p:a/b 0x(____ptrval____)\n"),
            [],
        ),
        (row(errno="EINVAL", shown=""), AskedAnswer("ENOENT", "No", "p f", 2),
         ["errno", "error", "command", "column"]),
    ],
)  # fmt: skip
def test_what_differs_is_named(verdict: KernelRow, answer: AskedAnswer, found: list[str]) -> None:
    assert list(differing(verdict, answer)) == found


# -- with real kernels -----------------------------------------------------------------


@boots
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_fresh_definitions_are_judged_as_the_kernel_judges_them(name: str) -> None:
    """Verdict, errno, text, column, listing, format, address, ftrace and jump, of each."""
    image = image_path(name)
    seed = SystemRandom().randrange(1 << 30)
    opened = OpenedKernel.open(image, KernelChoice())
    lines = fresh_definitions(opened, Random(seed), int(os.environ.get(FRESH, "200")))
    rows = asked(image, *lines)
    assert told(rows) == [], f"seed {seed}"
    kinds = Counter((each.answer.accepted, each.answer.flags) for each in rows)
    assert kinds[False, None] > len(lines) // 4
    assert kinds[True, ("FTRACE",)] > len(lines) // 20


@boots
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_says_what_it_has_said_on_another_machine(name: str) -> None:
    """The golden definitions, but those with the modules of that machine."""
    given = [
        each
        for each in golden_rows(GOLDEN[name], "definitions")
        if "9p" not in each["line"] and "0x00000000" not in each.get("shown", "")
    ]
    machine = AgentMachine(AgentRequest(str(image_path(name))), kernel_image(name))
    lines, shown = [each["line"] for each in given], [each.get("shown", "") for each in given]
    try:
        found = answered(machine, lines, shown, file=KPROBE_EVENTS, sequence=False)
    finally:
        machine.close()
    for each, answer in zip(given, found, strict=True):
        name_of = error_name(-each["rc"]) if each["rc"] else ""
        expected = (name_of, each.get("err") or "", each.get("col"), each.get("shown", ""))
        ours = (answer.errno, answer.error, answer.column, answer.shown)
        if each["line"] == "p:d/e v9fs_vfs_lookup":
            continue
        assert ours == expected, each["line"]
        assert answer.format == (each.get("format") or ""), each["line"]


@boots
@pytest.mark.slow
def test_definitions_that_build_on_each_other() -> None:
    lines = [each["line"] for each in golden_rows(GOLDEN[AMD64_61], "definitions_state")]
    assert told(asked(image_path(AMD64_61), *lines, choice=KernelChoice(sequence=True))) == []


@boots
@pytest.mark.slow
def test_events_of_functions_and_tracepoints() -> None:
    lines = (
        *("f:g/a vfs_read", "f vfs_read%return $retval", "f vfs_read file->f_pos", "f nosuch"),
        *("f vfs_*", "f:g/a !vfs_read", "f:g/a 12", "f:g/a vfs_*+0", "f:g/a __pfx_*", "f *_read"),
        *("t sched_switch prev->comm:string preempt", "t nosuch", "t sched_switch $arg1"),
        *("p vfs_read+9", "f vfs_read+4", "f:1/a vfs_read", "f5:g/a vfs_read", "x", "f kfree a"),
    )
    choice = KernelChoice(dynamic_events=True)
    for name in KERNELS:
        assert told(asked(image_path(name), *lines, choice=choice)) == []


@boots
@pytest.mark.slow
def test_a_booted_kernel_goes_on_identically_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a boot, and after three restores: answers, console, state and memory."""
    work = [
        *(writing(f"{TRACING}/kprobe_events", b"p:k/a vfs_read+9\np:k/b vfs_write\n"),),
        *(writing(f"{TRACING}/events/k/{event}/enable", b"1\n") for event in "ab"),
        *(
            sleeping(300),
            reading(LIST),
            reading(f"{TRACING}/kprobe_profile"),
            reading("/proc/cpuinfo"),
        ),
        *(writing(f"{TRACING}/events/k/{event}/enable", b"0\n") for event in "ab"),
        *(writing(f"{TRACING}/kprobe_events", b"", TRUNCATE), writing("/dev/kmsg", b"hello\n")),
        *(reading("/proc/interrupts"), reading("/proc/uptime"), sleeping(2000)),
    ]
    monkeypatch.setenv("KPROBE_TUI_KERNEL_CACHE", str(tmp_path))
    outcomes = []
    for _ in range(4):
        machine = AgentMachine(AgentRequest(str(image_path(AMD64_61))), kernel_image(AMD64_61))
        assert machine.remarks == []
        answers = machine.ask(work)
        assert b"[OPTIMIZED]" in answers[4].data
        inner = machine._machine
        outcomes.append((answers, bytes(machine._console), inner.state(), inner.cpu.memory[:]))
        machine.close()
    assert outcomes[0][0] == outcomes[1][0]
    assert outcomes[0][2:] == outcomes[1][2:]
    assert outcomes[1] == outcomes[2] == outcomes[3]


@boots
@pytest.mark.slow
def test_a_damaged_snapshot_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_KERNEL_CACHE", str(tmp_path))
    request, kernel = AgentRequest(str(image_path(AMD64_61))), kernel_image(AMD64_61)
    AgentMachine(request, kernel).close()
    (path,) = (cache_folder() / "machines").iterdir()
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)
    machine = AgentMachine(request, kernel)
    (remark,) = machine.remarks
    assert remark.endswith("the checksum of its pages is another one: made anew")
    assert machine.ask([reading("/proc/version")])[0].data.startswith(b"Linux version 6.1")
    machine.close()
    again = AgentMachine(request, kernel)
    assert again.remarks == []
    again.close()


@boots
@pytest.mark.slow
def test_a_kernel_that_does_not_come_up_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel panics, or its time is over; no snapshot is left."""
    monkeypatch.setenv("KPROBE_TUI_KERNEL_CACHE", str(tmp_path))
    image, kernel = str(image_path(AMD64_61)), kernel_image(AMD64_61)
    with pytest.raises(CommandError, match="the kernel has panicked: VFS: Unable to mount root"):
        AgentMachine(AgentRequest(image, "rdinit=/nosuch"), kernel)
    with pytest.raises(CutOff):
        AgentMachine(AgentRequest(image, "", 0.2), kernel)
    assert not (cache_folder() / "machines").exists()
