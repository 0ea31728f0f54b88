"""Names and files of processes, each at its time."""

import os

import pytest
from livekit import DATA, PROGRAM

from engine.image import ElfImage
from engine.session.live.eventlog import ANONYMOUS, MemorySpot
from engine.session.live.processes import LiveProcess, LiveProcesses, ProbedCode
from engine.session.live.sideband import (
    ForkNotice,
    LiveRegion,
    MapNotice,
    NameNotice,
    parse_notices,
)
from engine.trace.rows import EventInfo, pack_row

DEPOSIT = 0x400770


@pytest.fixture
def processes() -> LiveProcesses:
    """One that has executed the program, another that was another program before."""
    found = LiveProcesses()
    found.hear(
        [
            NameNotice(100, 7, 7, b"shell", True),
            MapNotice(101, 7, LiveRegion(0x400000, 0x401000, 0, "/nowhere/shell")),
            ForkNotice(200, 8, 7, 8),
            NameNotice(300, 8, 8, b"structs", True),
            MapNotice(301, 8, LiveRegion(0x400000, 0x402000, 0, str(PROGRAM))),
            ForkNotice(400, 8, 8, 9),
            NameNotice(500, 8, 9, b"worker", False),
        ]
    )
    return found


def test_names_are_those_of_the_time(processes: LiveProcesses) -> None:
    for time, thread, comm in (
        (150, 7, b"shell"),
        (250, 8, b"shell"),
        (350, 8, b"structs"),
        (450, 9, b"structs"),
        (550, 9, b"worker"),
        (550, 8, b"structs"),
        (250, 8, b"shell"),
    ):
        processes.turn_to(thread, time)
        assert processes.comm(thread) == comm


def test_addresses_are_those_of_the_program_at_the_time(processes: LiveProcesses) -> None:
    processes.turn_to(8, 250)  # still what it was forked from
    assert processes.symbol(DEPOSIT) == hex(DEPOSIT)
    processes.turn_to(9, 450)
    assert processes.symbol(DEPOSIT).startswith("deposit+0x0/")
    file = processes.file(DEPOSIT)
    assert file is not None
    assert file.path == str(PROGRAM)
    assert processes.file(0x7FFF00000000) is None
    assert processes.process(9) == 8
    assert processes.line(0x10) is None


def test_what_a_real_process_has_told(tmp_path: object) -> None:
    found = LiveProcesses()
    notices = list(parse_notices((DATA / "sideband.bin").read_bytes()))
    found.hear(notices)
    (pid,) = {one.pid for one in notices if isinstance(one, NameNotice)}
    shown = found.turn_to(pid, notices[-1].time)
    region = shown.find(DEPOSIT)
    assert region is not None
    assert region.path == "/tmp/structs"
    assert found.comm(pid) == b"structs"


def test_a_process_that_runs_is_looked_at() -> None:
    found = LiveProcesses()
    found.look(os.getpid())
    shown = found.turn_to(os.getpid(), 1)
    assert any(region.path.startswith("/") for region in shown.regions)
    assert found.comm(os.getpid()) is not None


def test_memory_that_comes_in_the_place_of_other_memory() -> None:
    process = LiveProcess(1, 0, 1)
    process.map(LiveRegion(0x1000, 0x5000, 0, "/a"))
    process.map(LiveRegion(0x2000, 0x3000, 0x9000, "/b"))
    assert process.regions == [
        LiveRegion(0x1000, 0x2000, 0, "/a"),
        LiveRegion(0x2000, 0x3000, 0x9000, "/b"),
        LiveRegion(0x3000, 0x5000, 0x2000, "/a"),
    ]
    process.map(LiveRegion(0x1800, 0x6000, 0, ""))
    assert [region.start for region in process.regions] == [0x1000, 0x1800]
    assert process.find(0x1FFF) == process.regions[1]
    assert process.find(0x6000) is None
    assert process.find(0xFFF) is None


def test_code_that_takes_the_place_of_other_code_is_named_at_its_time() -> None:
    found = LiveProcesses()
    found.hear(
        [
            NameNotice(100, 8, 8, b"structs", True),
            MapNotice(101, 8, LiveRegion(0x400000, 0x402000, 0, str(PROGRAM), True)),
            MapNotice(200, 8, LiveRegion(0x400000, 0x402000, 0, "//anon")),
        ]
    )
    assert found.spots(8, 150)(DEPOSIT) == MemorySpot(str(PROGRAM), 0x770)
    assert found.spots(8, 250)(DEPOSIT) == MemorySpot(ANONYMOUS)
    found.turn_to(8, 150)
    assert found.symbol(DEPOSIT).startswith("deposit+0x0/")
    before = found.turn_to(8, 150).number
    found.turn_to(8, 250)
    assert found.symbol(DEPOSIT) == hex(DEPOSIT)
    assert found.turn_to(8, 250).number != before


def test_states_of_a_process_that_are_over_are_forgotten() -> None:
    found = LiveProcesses()
    found.hear([NameNotice(1, 8, 8, b"structs", True)])
    numbers = set()
    for time in range(10, 1000, 10):
        path = str(PROGRAM) if time % 20 else "//anon"
        found.hear(
            [MapNotice(time, 8, LiveRegion(0x400000, 0x402000, 0, path, path == str(PROGRAM)))]
        )
        numbers.add(found.turn_to(8, time + 1).number)
        assert found.turn_to(8, time + 1).find(DEPOSIT) is not None
        assert len(found._processes[8]) < 5
    assert len(numbers) > 40


def test_parts_of_one_file_that_lie_over_one_another_are_one_state() -> None:
    found = LiveProcesses()
    found.hear(
        [
            NameNotice(1, 8, 8, b"structs", True),
            MapNotice(2, 8, LiveRegion(0x7000, 0xB000, 0, "/lib/a.so")),
            MapNotice(3, 8, LiveRegion(0x8000, 0x9000, 0x1000, "/lib/a.so", True)),
            MapNotice(4, 8, LiveRegion(0x9000, 0xB000, 0x1000, "/lib/a.so")),
            MapNotice(5, 8, LiveRegion(0xA000, 0xB000, 0, "//anon")),
        ]
    )
    assert found.turn_to(8, 2).number == found.turn_to(8, 6).number


def test_a_hit_tells_where_moved_code_is() -> None:
    image = ElfImage.open(PROGRAM)
    info = EventInfo(5, "g", "e", ())
    offset = image.file_offset(DEPOSIT)
    assert offset is not None
    found = LiveProcesses(probed=[ProbedCode(5, image, (str(PROGRAM), "structs"), offset)])
    found.hear([NameNotice(1, 8, 8, b"structs", True)])
    address = 0x7F0000003000 + offset % 0x1000
    found.place(pack_row(info, 8, 50, address, ()))
    found.turn_to(8, 50)
    assert found.symbol(address).startswith("deposit+0x0/")
    assert found.symbol(address + 0x1000) == hex(address + 0x1000)
    found.place(pack_row(info, 8, 60, address + 0x1008, ()))  # nobody's: another offset
    assert found.symbol(address + 0x1008) == hex(address + 0x1008)
