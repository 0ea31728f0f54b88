"""Filters, triggers, text options and format files as a real kernel has them.

The oracle is tracefs of Linux 6.18 with uprobes; `events.json` has its answers. All its tests
run as events of one guest, but for those about what the guest has instead of a kernel.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.arch.program import RecordLayout
from engine.errors import ProbeError
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.output import profile_lines
from engine.session.tracing.tracing import Tracing
from engine.trace.definition import Definition, parse
from engine.trace.fields import own_fields, print_format
from engine.trace.filter import FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.rows import EventInfo

DATA: Final = CHECKOUT / "tests" / "data" / "uprobes"
ANSWERS: Final[dict[str, Any]] = json.loads((DATA / "events.json").read_text())
TESTS: Final[dict[str, dict[str, Any]]] = {test["id"]: test for test in ANSWERS["tests"]}
KERNEL_STACKS: Final = {"trigger/02", "out/option-stacktrace"}
"""The kernel shows its own functions there, of which a guest has none."""
WHOLE_STACKS: Final = {"out/option-userstacktrace"}
"""The kernel finds only the innermost frame there."""
NUMBERS: Final = {"out/option-raw", "out/option-hex", "out/option-bin"}
LATENCY: Final = {"out/option-latency-format"}
CPUS: Final = 2
"""Of the machine that answered."""


def of(prefix: str) -> list[str]:
    return [name for name in TESTS if name.startswith(prefix)]


class Run:
    """One run of the program with an event for each filter and each trigger test.

    Attributes:
        tracing: it, ended.
        rows: everything recorded.
        path: of the program.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.path = folder / "kf_nopie"
        shutil.copy(DATA / "kf_nopie", self.path)
        sink = SinkStream(lambda data: None)
        config = GuestConfig(str(self.path), root=str(root), shares=((str(folder), False),))
        session = Session(config, stdio=(FeedStream(b"", ended=True), sink, sink))
        rows: list[bytes] = []
        options = TraceOptions(mode=Mode.KERNEL)
        try:
            self.tracing = Tracing(session, options, consumer=rows.append)
            for name in (*of("filter/"), *of("trigger/"), *of("out/")):
                test = TESTS[name]
                line = test["definition"].replace("{ELF}", str(self.path))
                self.tracing.definitions.define(line.replace("kfacts/e", f"kfacts/{event(name)}"))
                if test["filter"] is not None:
                    self.tracing.set_filter("kfacts", event(name), test["filter"]["text"])
                if test["trigger"] is not None:
                    text = test["trigger"]["text"].replace("kfacts:e", f"kfacts:{event(name)}")
                    self.tracing.add_trigger("kfacts", event(name), text)
            self.tracing.controls.stacks = False
            self.tracing.start()
            session.run()
            self.tracing.finish()
        finally:
            session.close()
        self.rows = b"".join(rows)

    def bodies(self, name: str, *options: str) -> list[str]:
        """The lines of one event's rows, behind the time; call stacks are left out."""
        text = self.text(*options)
        found = re.findall(rf"^.*?(?:\d: )({event(name)}: .*)$", text, re.MULTILINE)
        return [line.replace(event(name), "e", 1) for line in found]

    def text(self, *options: str) -> str:
        names = Names(comm=lambda thread: b"kf_nopie")
        return FtraceFormat(self.tracing.table, names, options).rows(self.rows).decode()


def event(name: str) -> str:
    """An event's name for a test's."""
    return "e_" + re.sub(r"\W", "_", name)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    try:
        root = sysroot("x86_64")
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))
    return Run(root, tmp_path_factory.mktemp("events"))


def info_of(definition: str, number: int = 7) -> EventInfo:
    parsed = parse(definition.replace("{ELF}", "/elf"), by_name("x86_64"), mode=Mode.KERNEL)
    assert isinstance(parsed, Definition)
    layout = RecordLayout.of(parsed.args, parsed.is_return)
    return EventInfo.of(number, parsed.group, parsed.event, layout)


@pytest.mark.parametrize("name", of("filter/"))
def test_a_filter_passes_what_the_kernels_passes(name: str, run: Run) -> None:
    assert run.bodies(name) == TESTS[name]["trace"]
    assert len(run.bodies(name)) == TESTS[name]["total"]


@pytest.mark.parametrize("name", of("filter/"))
def test_a_filters_file_shows_what_the_kernels_shows(name: str, run: Run) -> None:
    expected = TESTS[name]["filter"]
    info = info_of(TESTS[name]["definition"])
    machine = FilterMachine(cpus=CPUS)
    if expected["errno"] is None:
        assert parse_filter(expected["text"], info, machine).text == expected["readback"]
        return
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(expected["text"], info, machine)
    error = caught.value
    assert (error.errno, error.readback) == (expected["errno"], expected["readback"])
    shown = (error.text, error.column, error.subsystem)
    assert shown == (expected["error"], expected["caret"], expected["subsystem"])
    with pytest.raises(ProbeError):  # in strict mode it ends the command
        parse_filter(expected["text"], info)


@pytest.mark.parametrize("name", sorted(set(of("trigger/")) - KERNEL_STACKS))
def test_a_trigger_does_what_the_kernels_does(name: str, run: Run) -> None:
    assert run.bodies(name) == TESTS[name]["trace"]


def test_the_stack_trigger_acts_behind_the_same_events(run: Run) -> None:
    lines = [line for line in TESTS["trigger/02"]["trace"] if line.startswith("e: ")]
    assert run.bodies("trigger/02") == lines
    shown = [line.split(": ", 1)[-1] for line in run.text().splitlines()]
    first = shown.index("e_trigger_02: (0x401156) a=1")
    assert shown[first + 1] == "<user stack trace>"
    assert shown[first + 2].startswith(" =>  <0000000000401156>")
    assert shown.count("<user stack trace>") == 1


@pytest.mark.parametrize("name", of("trigger/"))
def test_a_triggers_file_shows_what_the_kernels_shows(name: str, run: Run) -> None:
    expected = TESTS[name]["trigger"]
    control = run.tracing.controls.of(run.tracing.info("kfacts", event(name)))
    for armed in control.triggers:  # the kernel's file was read before the first hit
        armed.left = armed.trigger.count
    shown = "\n".join(control.trigger_lines()).replace(event(name), "e")
    if "Available" in expected["readback"]:  # this kernel has neither histograms nor snapshots
        shown = shown.replace(" snapshot", "").replace(" hist", "")
        shown = shown.replace(" enable_hist disable_hist", "")
    assert shown == expected["readback"]


@pytest.mark.parametrize("name", sorted(set(of("out/")) - NUMBERS - LATENCY - KERNEL_STACKS))
def test_text_options(name: str, run: Run) -> None:
    option = name.removeprefix("out/").removeprefix("option-")
    options = () if option == "header" else (option,)
    expected = TESTS[name]
    lines = [line for line in expected["trace"] if line.startswith("e: ")]
    assert run.bodies(name, *options) == lines
    count = 4 if name in WHOLE_STACKS else 2
    header = FtraceFormat({}, Names(), options).header(count, count).decode()
    assert header.replace("#P:1", "#P:2").splitlines() == expected["header"]


def test_user_stacks_print_as_the_kernels(run: Run) -> None:
    expected = TESTS["out/option-userstacktrace"]["trace"]
    text = run.text("nosym-userobj")
    assert re.search(r"\.\.\.\.\. +\d+: <user stack trace>\n", text)
    assert expected[1] == "<user stack trace>"
    assert expected[2] in text.splitlines()


def test_the_latency_format(run: Run) -> None:
    text = run.text("latency-format")
    for line in TESTS["out/option-latency-format"]["trace"]:
        body = line.split(": ", 1)[1].replace("e: ", "e_out_option_latency_format: ", 1)
        found = re.search(rf"^(.*) +\d+: {re.escape(body)}$", text, re.MULTILINE)
        assert found is not None
        # Comm, pid and CPU stand where the kernel has them; the flags are dots.
        assert re.fullmatch(r"kf_nopie-1000      0\.\.\.\.\. *", found[1])
        assert re.match(r"kf_nopie-17865     0DBZff", line)
    header = FtraceFormat({}, Names(), ("latency-format",)).header(2, 2).decode()
    expected = TESTS["out/option-latency-format"]["header"]
    differ = [(a, b) for a, b in zip(header.splitlines(), expected, strict=True) if a != b]
    assert [line.split()[1] for line, _ in differ] == ["nop", "latency:"]


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_options_that_print_numbers(name: str, run: Run) -> None:
    shapes = {
        "out/option-raw": r"\d+ 0 \d+ type: \d+",
        "out/option-hex": r"[0-9a-f]{8} 00000000 [0-9a-f]{16} type: \d+",
    }
    option = name.removeprefix("out/option-")
    if option == "bin":
        data = FtraceFormat(run.tracing.table, Names(), ("bin",)).rows(run.rows)
        assert data[:8] == (1000).to_bytes(4, "little") + bytes(4)
        assert re.match(rb"type: \d+\n", data[16:])
        return
    ours, theirs = run.text(option).splitlines(), TESTS[name]["trace"]
    every = [line for line in (*ours, *theirs) if line]
    assert all(re.fullmatch(shapes[name], line) for line in every)
    assert ("" in ours) == ("" in theirs)


def test_the_profile(run: Run) -> None:
    lines = list(profile_lines(run.tracing.events.values(), ()))
    expected = []
    for name in (*of("filter/"), *of("trigger/"), *of("out/")):
        (line,) = TESTS[name]["profile"]
        path, _, hits = line.split()
        assert path == "{ELF}"
        expected.append(f"  {run.path} {event(name):<44} {hits:>15}")
    assert lines == expected
    (kernels,) = TESTS["out/header"]["profile"]
    assert kernels == f"  {{ELF}} {'e':<44} {2:>15}"


@pytest.mark.parametrize("index", range(len(ANSWERS["formats"])))
def test_format_files(index: int) -> None:
    expected = ANSWERS["formats"][index]
    info = info_of(expected["definition"])
    assert [field.describe() for field in own_fields(info)] == expected["fields"]
    assert print_format(info) == expected["print_fmt"]
