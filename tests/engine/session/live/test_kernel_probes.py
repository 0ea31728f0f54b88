"""Definitions of a session as the running kernel's lines."""

from pathlib import Path

import pytest
from compiled import build
from kernelimages import AMD64_61, image_path
from livekit import LINES, PROGRAM, defined, placed
from sessionkit import SAMPLES
from sysroot import CHECKOUT

from engine.arch import by_name
from engine.errors import CommandError
from engine.session.live import kernel_probes
from engine.session.live.instance import KernelInstance
from engine.session.live.kernel_probes import KernelProbes
from engine.session.live.tracefs import Tracefs
from engine.session.protocol.requests import TraceOptions

ARCH = by_name("x86_64")
LOCKED = "p:a lock+7"


def format_file(number: int) -> str:
    """One of an event without arguments."""
    return (
        f"name: e\nID: {number}\nformat:\n"
        "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
    )


class PlainInstance(KernelInstance):
    """An instance of plain files whose directories come when they are asked for."""

    def event(self, group: str, name: str) -> Path:
        found = super().event(group, name)
        if not found.exists():
            found.mkdir(parents=True)
            for file in ("filter", "trigger", "enable"):
                (found / file).write_text("")
            (found / "format").write_text(format_file(1000 + len(list(found.parent.iterdir()))))
        return found


@pytest.fixture
def instance(tmp_path: Path) -> PlainInstance:
    (tmp_path / "uprobe_events").write_text("")
    return PlainInstance(Tracefs(tmp_path), "mine")


def defined_lines(instance: KernelInstance) -> list[str]:
    return instance.tracefs.listed("uprobe_events")


def test_lines(instance: PlainInstance) -> None:
    with placed(*LINES) as probes:
        lines = [probe.line("g", ARCH) for probe in probes.probes]
        assert probes.files == [str(PROGRAM)]
    heads = [line.split()[0] for line in lines]
    assert heads == [
        "p:g/transfer",
        "r:g/transferred",
        "p:g/deposit",
        "r:g/deposited",
        "p:g/person",
    ]
    where = {line.split()[0]: line.split()[1] for line in lines}
    assert where["p:g/transfer"] == where["r:g/transferred"]
    for line, given in zip(lines, LINES, strict=True):
        path, _, offset = line.split()[1].rpartition(":")
        assert path == str(PROGRAM)
        assert 0 < int(offset, 16) < PROGRAM.stat().st_size
        assert line.split()[2:] == given.split()[2:]


def test_names_are_resolved() -> None:
    with placed("p:a deposit $arg2:s32 home=+20($arg1):string") as probes:
        (probe,) = probes.probes
        assert probe.line("g", ARCH).split()[2:] == ["arg1=%si:s32", "home=+20(%di):string"]


def test_filters_triggers_and_groups(instance: PlainInstance) -> None:
    with defined("p:one/a transfer", "p:two/b deposit amount=%si:s32", "p:one/c deposit") as trace:
        trace.set_filter("two", "b", "amount > 5")
        trace.add_trigger("one", "a", "enable_event:two:b:3")
        trace.add_trigger("one", "a", "traceoff if __probe_ip == 1")
        trace.add_trigger("one", "c", "hist:keys=__probe_ip")
        probes = KernelProbes(trace)
        text = format_file(7).replace(
            "format:\n", "format:\n\tfield:s32 amount;\toffset:16;\tsize:4;\tsigned:1;\n"
        )
        instance.event("mine_1", "b")
        (instance.path / "events/mine_1/b/format").write_text(text)
        makers = probes.define(instance)
        assert len(makers) == 3
        probes.enable(instance)

    heads = [line.split()[0] for line in defined_lines(instance)]
    assert heads == ["p:mine_0/a", "p:mine_1/b", "p:mine_0/c"]

    def written(event: str, file: str) -> str:
        return (instance.path / "events" / event / file).read_text()

    assert written("mine_1/b", "filter") == "amount > 5\n"
    triggers = written("mine_0/a", "trigger").splitlines()
    assert triggers == ["enable_event:mine_1:b:3", "traceoff if __probe_ip == 1"]
    assert written("mine_0/c", "trigger") == ""  # counted here
    enabled = {name: written(name, "enable") for name in ("mine_0/a", "mine_0/c", "mine_1/b")}
    assert enabled == {"mine_0/a": "1\n", "mine_0/c": "1\n", "mine_1/b": ""}


@pytest.mark.parametrize(
    ("trigger", "why"),
    [("stacktrace", "give --stack"), ("snapshot", "as they come")],
)
def test_triggers_that_mean_something_else_there(trigger: str, why: str) -> None:
    with defined("p:a deposit", options=TraceOptions(buffer=8)) as trace:
        trace.add_trigger("kprobes", "a", trigger)
        with pytest.raises(CommandError, match=why):
            KernelProbes(trace)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("syscalls/sys_enter_write", "live places probes only, and this event has none"),
        ("e:b syscalls.sys_enter_write n=$count", "event probe: trace has it"),
        ("e:b kprobes.a ip=$__probe_ip", "Linux has event probes on tracepoints alone"),
        ("s:made u64 a", "makes none of them: trace has"),
    ],
)
def test_events_without_a_probe_are_refused(line: str, why: str) -> None:
    with defined("p:a deposit", line) as trace, pytest.raises(CommandError, match=why):
        KernelProbes(trace)


def test_nothing_to_place_is_refused() -> None:
    with defined() as trace, pytest.raises(CommandError, match="nothing to place"):
        KernelProbes(trace)


def test_places_where_the_kernel_places_nothing_without_a_word() -> None:
    # It refuses an instruction with a lock prefix only once somebody enables the event.
    program = SAMPLES / "x86_64" / "deadlock"
    with (
        defined(LOCKED, program=program) as trace,
        pytest.raises(CommandError, match="the running kernel places no uprobe at"),
    ):
        KernelProbes(trace)


def test_places_where_the_kernel_damages_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = CHECKOUT / "tests" / "data" / "uprobes" / "kf_extra"
    line = f"p:g/red {extra}:0x1238"
    monkeypatch.setattr(kernel_probes, "_release", lambda: (6, 18))
    with (
        defined(line, program=extra) as trace,
        pytest.raises(CommandError, match=r"Linux 6.18 damages the program.* '!' in front"),
    ):
        KernelProbes(trace)
    with defined(f"!{line}", program=extra) as trace:
        assert len(KernelProbes(trace).probes) == 1
    monkeypatch.setattr(kernel_probes, "_release", lambda: (6, 1))
    with defined(line, program=extra) as trace:
        assert len(KernelProbes(trace).probes) == 1


@pytest.mark.parametrize(
    ("line", "why", "releases"),
    [
        ("p:g/e step", r"takes opcode byte 9d for that of popf.*x86\.uprobe-vex-popf", (3, 4)),
        ("p:g/e skip_at", r"takes opcode byte 72 for that of a jump", (3, 15)),
        ("p:g/e _start", r"x86\.uprobe-int3: with a uprobe anywhere", (3, 4)),
        ("r:g/e _start", r"return-no-caller: nobody calls an entry point", None),
    ],
)
def test_places_that_the_kernel_takes_for_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    why: str,
    releases: tuple[int, int] | None,
) -> None:
    source = (CHECKOUT / "tests/data/uprobes/faults.S").read_text().partition("*/\n")[2]
    if "int3" not in why:
        source = source.replace(".byte 0xcd, 0x03, 0xff", "nop")
    program = build(tmp_path, "faults", source, "-nostdlib", "-static")
    monkeypatch.setattr(kernel_probes, "_release", lambda: (6, 18))
    with (
        defined(line, program=program) as trace,
        pytest.raises(CommandError, match=rf"{why}.* '!' in front"),
    ):
        KernelProbes(trace)
    with defined(f"!{line}", program=program) as trace:
        assert len(KernelProbes(trace).probes) == 1
    if releases is not None:
        monkeypatch.setattr(kernel_probes, "_release", lambda: releases)
        with defined(line, program=program) as trace:
            assert len(KernelProbes(trace).probes) == 1


def test_the_rule_behind_a_refused_kprobe(tmp_path: Path) -> None:
    (tmp_path / "kprobe_events").mkdir()  # refuses to be written to
    with placed("p:a do_int3", program=image_path(AMD64_61)) as probes:
        instance = PlainInstance(Tracefs(tmp_path), "mine")
        with pytest.raises(CommandError, match=r"'p:mine_0/a do_int3': EISDIR: .*blacklist"):
            probes.define(instance)
