"""Made-up events against the kernel that runs here; only if the environment says so.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted. `KPROBE_TUI_LIVE_EVENTS` asks
for more cases than usual, `KPROBE_TUI_LIVE_SEED` for other ones.
"""

import os
import platform
import re
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from liveevents import PROGRAM, Case, Cases, LiveEvents, Recorded, live_events, rows
from livekernel import LIVE_KERNEL
from sessionkit import loaded

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.errors import ProbeError
from engine.image import ElfImage, SymbolTable
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.output import profile_lines

COUNT: Final = int(os.environ.get("KPROBE_TUI_LIVE_EVENTS", "200"))
SEED: Final = int(os.environ.get("KPROBE_TUI_LIVE_SEED", "618"))
_FUNCTIONS: Final = {"f1": "f2", "f2": "f3", "f3": "f4", "f4": "stop"}

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"asks the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)


def places(program: Path) -> dict[str, list[int]]:
    """File offsets of the instructions of each function, and addresses of data."""
    image = ElfImage.open(str(program))
    symbols = SymbolTable(image, ())
    probes = by_name("x86_64").probes

    def address(name: str) -> int:
        found = symbols.find(name)
        assert found is not None
        return found.address

    found = {name: [address(name)] for name in ("record", "numbers")}
    found["offset"] = [image.file_offset(address("record")) or 0]
    for name, follower in _FUNCTIONS.items():
        at, offsets = address(name), []
        while at < address(follower):
            offsets.append(image.file_offset(at) or 0)
            at += probes.length(image.read_vaddr(at, 15))
        found[name] = offsets
    return found


def ours(case: Case, program: Path, group: str) -> Recorded:
    """What becomes of a case here, in kernel mode."""
    found = Recorded()
    with loaded(program) as guest:
        tracing = guest.tracing(TraceOptions(mode=Mode.KERNEL))

        def taken(change: object, *words: str) -> bool:
            assert callable(change)
            try:
                return not isinstance(refused := change(*words), str) or not refused
            except ProbeError:
                return False

        found.taken += [taken(tracing.definitions.define, line) for line in case.lines]
        found.taken += [taken(tracing.set_filter, group, *words) for words in case.filters]
        found.taken += [taken(tracing.add_trigger, group, *words) for words in case.triggers]
        guest.run(tracing)
        found.rows = rows(guest.written, program.name)
        for (_, name), info in tracing.infos.items():
            control = tracing.controls.of(info)
            found.shown[f"{name}/filter"] = control.filter_text
            lines = "\n".join(control.trigger_lines())
            found.shown[f"{name}/trigger"] = lines
        words = [line.split() for line in profile_lines(tracing.events.values(), ())]
        found.hits = sorted((each[-2], int(each[-1])) for each in words)
    return found


def same_row(theirs: bytes, mine: bytes, case: Case) -> bool:
    """True if two rows are the same but for the kernel's stale bytes and its own addresses."""
    if theirs == mine:
        return True
    name = theirs.partition(b":")[0].decode()
    line = next((line for line in case.lines if f"/{name} " in line), "")
    texts = [word.partition("=")[2] for word in line.split()[2:]]
    first, *left = re.split(rb" v\d+=", theirs)
    other, *right = re.split(rb" v\d+=", mine)
    if first != other or not len(texts) == len(left) == len(right):
        return False
    hijacked = any(line.startswith("r") for line in case.lines)
    for text, value, own in zip(texts, left, right, strict=True):
        if value == own:
            continue
        if hijacked and re.search(r"stack|%[sb]p", text):
            continue  # the return trampoline has another address there
        if text.endswith(":string[2]") and b"(fault)" in own:
            continue  # what the buffer held before
        if "(" in text and ":string" not in text and re.fullmatch(rb"(0x)?0|\{[0x,'\\]+\}", own):
            continue  # the same for a number that cannot be read
        return False
    return True


def differences(theirs: Recorded, mine: Recorded, case: Case) -> list[str]:
    found = []
    if theirs.taken != mine.taken:
        found.append(f"taken {theirs.taken}, here {mine.taken}")
    if len(theirs.rows) != len(mine.rows):
        found.append(f"{len(theirs.rows)} rows, here {len(mine.rows)}")
    for value, own in zip(theirs.rows, mine.rows, strict=False):
        if not same_row(value, own, case):
            found.append(f"row {value!r}\n  here {own!r}")
            break
    for key, text in theirs.shown.items():
        # This kernel may lack some triggers.
        shown = mine.shown.get(key, "")
        if text != shown and not (text.startswith("# Avail") and shown.startswith("# Avail")):
            found.append(f"{key}: {text}\n  here {shown}")
    if theirs.hits != mine.hits:
        found.append(f"hits {theirs.hits}, here {mine.hits}")
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    flags = ("-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none")
    return build(folder, "kfmade", PROGRAM, *flags)


def test_made_up_events(program: Path) -> None:
    group = f"kprobe_tui_{os.getpid()}"
    cases = Cases(program, group, places(program), SEED)
    wrong: list[str] = []
    counted = 0
    try:
        with live_events(program, group) as kernel:
            for _ in range(COUNT):
                case = cases.case()
                theirs = kernel.record(case)
                counted += len(theirs.rows)
                found = differences(theirs, ours(case, program, group), case)
                if found:
                    wrong.append(_told(*smallest(kernel, case, found, program, group)))
    except OSError as error:
        pytest.skip(f"no kernel to ask: {error}")
    print(f"{COUNT} cases, {counted} events")
    assert counted > COUNT
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:5])


def smallest(
    kernel: LiveEvents, case: Case, found: list[str], program: Path, group: str
) -> tuple[Case, list[str]]:
    """The case with everything left out that the difference does not need."""
    again = True
    while again:
        again = False
        for less in case.smaller():
            fewer = differences(kernel.record(less), ours(less, program, group), less)
            if fewer:
                case, found, again = less, fewer, True
                break
    return case, found


def _told(case: Case, found: list[str]) -> str:
    return "\n".join([*case.lines, f"{case.filters} {case.triggers}", *found])
