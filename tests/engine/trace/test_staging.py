"""The staging: draining, failing consumers, and what a killed process leaves."""

import errno
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.errors import CommandError
from engine.trace.recovery import Recovered, recover
from engine.trace.ring_file import PLACES, RingFile, describe
from engine.trace.rows import EventInfo, decode
from engine.trace.staging import PAGE, SMALLEST, Consumer, Staging

RAX = Base(Source.REGISTER, "rax")
NUMBERS = EventInfo.of(
    1,
    "g",
    "numbers",
    RecordLayout.of((FetchArg("n", "%ax", RAX, (), FieldType(ValueKind.HEX, 8)),)),
)
TEXTS = EventInfo.of(
    2,
    "g",
    "texts",
    RecordLayout.of(
        (FetchArg("s", "x", RAX, (0,), FieldType(ValueKind.STRING, 0)),), returns=True
    ),
    symbolic=True,
)
TABLE = describe(
    (NUMBERS, TEXTS), "x86_64", {"format": "ftrace"}, [(0x10, "main+0x0/0x20")], [0x10]
)


def installed(path: Path) -> RingFile:
    """A file behind rows, in the place of whatever was there."""
    file = RingFile(path, SMALLEST)
    file.install()
    return file


def backed(path: Path, consumer: Consumer = lambda data: None) -> tuple[RingFile, Staging]:
    """A staging with a file behind it that is described already."""
    file = installed(path)
    file.describe(TABLE)
    return file, Staging(consumer, file=file)


def write(staging: Staging, row: bytes) -> None:
    """The writer's protocol."""
    if staging.position + len(row) > staging.limit:
        staging.drain()
    staging.buffer[staging.position : staging.position + len(row)] = row
    staging.position += len(row)


def number_row(number: int) -> bytes:
    return struct.pack("<HHIQQQ", 1, 4, 7, number, 0x10, number * 3)


def text_row(number: int, text: bytes) -> bytes:
    words = 5 + (len(text) + 1 + 7) // 8
    word = 40 | len(text) + 1 << 32
    return struct.pack("<HHIQQQQ", 2, words, 7, number, 0x10, 0x20, word) + text.ljust(
        words * 8 - 40, b"\0"
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.ring"


@pytest.mark.parametrize("with_file", [False, True])
def test_every_row_reaches_the_consumer_once_and_in_order(with_file: bool, path: Path) -> None:
    drained: list[bytes] = []
    file = installed(path) if with_file else None
    staging = Staging(drained.append, SMALLEST, file)
    rows = [
        number_row(number) if number % 3 else text_row(number, b"t" * (number % 97))
        for number in range(9000)
    ]
    for row in rows:
        write(staging, row)
        assert staging.limit == staging.start + staging.capacity
    assert path.exists() == with_file
    staging.close()
    staging.close()
    if file is not None:
        file.close()
        file.close()
    assert len(drained) > 2
    assert b"".join(drained) == b"".join(rows)
    assert not path.exists()


def test_after_a_drain_all_is_zero() -> None:
    staging = Staging(lambda data: None, SMALLEST)
    while staging.position + 200 < staging.limit:
        write(staging, text_row(1, b"x" * 100))
    staging.drain()
    assert staging.position == staging.start
    assert not any(staging.buffer[:])


@pytest.mark.parametrize("with_file", [False, True])
def test_a_failing_consumer_is_reported_once_and_its_rows_are_counted(
    with_file: bool, path: Path
) -> None:
    def full(data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    told: list[OSError] = []
    file = installed(path) if with_file else None
    staging = Staging(full, SMALLEST, file, told.append)
    for _ in range(3):
        for number in range(10):
            write(staging, number_row(number))
        staging.drain()
    staging.close()
    assert staging.lost == 30
    assert [error.errno for error in told] == [errno.ENOSPC]
    assert staging.failure is told[0]


def check(found: Recovered, rows: list[bytes]) -> None:
    assert found.rows == b"".join(rows)
    assert found.count == len(rows)
    assert found.events == {1: NUMBERS, 2: TEXTS}
    assert (found.arch, found.symbols, found.returning, found.format) == (
        "x86_64",
        {0x10: "main+0x0/0x20"},
        frozenset({0x10}),
        "ftrace",
    )


def test_rows_can_be_recovered_without_the_session(path: Path) -> None:
    file, staging = backed(path)
    rows = [number_row(5), text_row(6, b"hello"), number_row(7)]
    for row in rows:
        write(staging, row)
    found = recover(path)
    check(found, rows)
    assert found.damaged == 0
    event = decode(found.events, found.rows, len(rows[0]))
    assert (event.name, event.time, event.returned_to, event.values) == (
        "texts",
        6,
        0x20,
        (b"hello",),
    )
    staging.close()
    file.close()


def test_a_newer_description_takes_the_place_of_the_one_before(path: Path) -> None:
    file, staging = backed(path)
    write(staging, number_row(1))
    for size in (0, 10, 1000, 5, 40_000, 0):
        symbols = dict.fromkeys(range(size), "s")
        file.describe(describe((NUMBERS, TEXTS), "x86_64", {}, symbols.items()))
        found = recover(path)
        assert len(found.symbols) == size
        assert found.count == 1
    sizes = []
    for _ in range(20):
        file.describe(TABLE)
        sizes.append(path.stat().st_size)
    assert sizes[-1] == sizes[2]  # the two places take turns
    check(recover(path), [number_row(1)])
    staging.close()
    file.close()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_staging import backed, number_row, text_row, write
out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
file, staging = backed(Path(sys.argv[2] + ".ring"), lambda data: os.write(out, data))
for number in range(int(sys.argv[3])):
    write(staging, text_row(number, b"k" * 9) if number % 5 == 0 else number_row(number))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("count", [0, 1000])
def test_nothing_is_lost_at_kill_9(count: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(out), str(count)]
    done = subprocess.run(
        words, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == -signal.SIGKILL
    found = recover(tmp_path / "out.ring")
    rows = [
        text_row(number, b"k" * 9) if number % 5 == 0 else number_row(number)
        for number in range(count)
    ]
    assert out.read_bytes() + found.rows == b"".join(rows)
    assert found.damaged == 0
    assert bool(out.read_bytes()) == (count == 9999)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.integers(0, 50), max_size=20),
    damage=st.binary(min_size=1, max_size=40),
    where=st.integers(0, 2000),
)
def test_recovery_stops_at_garbled_rows(
    path: Path, rows: list[int], damage: bytes, where: int
) -> None:
    file, staging = backed(path)
    whole = [text_row(number, b"q" * number) for number in rows]
    for row in whole:
        write(staging, row)
    data = bytearray(path.read_bytes())
    staging.close()
    file.close()
    data[PAGE + where : PAGE + where + len(damage)] = damage
    path.write_bytes(data)
    found = recover(path)
    ends = [sum(len(row) for row in whole[:index]) for index in range(len(whole) + 1)]
    untouched = max(index for index, end in enumerate(ends) if end <= where or index == 0)
    assert found.count >= untouched
    assert found.rows.startswith(b"".join(whole[:untouched]))
    position = 0
    for _ in range(found.count):  # whatever was taken can be decoded
        words = struct.unpack_from("<H", found.rows, position + 2)[0]
        decode(found.events, found.rows, position)
        position += words * 8
    assert position == len(found.rows)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(st.tuples(st.integers(0, 1 << 18), st.integers(0, 255)), max_size=4),
    head=st.lists(st.tuples(st.integers(0, PLACES[1] + 99), st.integers(0, 255)), max_size=2),
    size=st.none() | st.integers(0, 200_000),
)
def test_a_damaged_file_is_an_error_or_rows(
    path: Path, changes: list[tuple[int, int]], head: list[tuple[int, int]], size: int | None
) -> None:
    file, staging = backed(path)
    for number in range(5):
        write(staging, number_row(number))
    data = bytearray(path.read_bytes())
    staging.close()
    file.close()
    for at, value in changes + head:
        data[at % len(data)] = value
    path.write_bytes(data[:size])
    try:
        found = recover(path)
    except CommandError:
        return
    assert len(found.rows) % 8 == 0


def test_files_that_are_none_of_ours(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    other = tmp_path / "text"
    other.write_text("nothing of the kind")
    for one in (fifo, other, tmp_path, tmp_path / "absent"):
        with pytest.raises(CommandError):
            recover(one)


@pytest.mark.parametrize("data", [b"", bytes(PAGE), bytes(PAGE + SMALLEST)])
def test_a_file_whose_maker_was_killed_at_once_holds_nothing(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert recover(path) == Recovered()


def test_before_the_description_there_is_nothing(path: Path) -> None:
    file = installed(path)
    assert recover(path).count == 0
    file.close()


def test_a_file_of_before_is_replaced_not_truncated(path: Path) -> None:
    """Another process may have it mapped: cutting it short would kill that one."""
    path.write_bytes(b"rows of somebody")
    with path.open("rb") as before:
        file = RingFile(path, SMALLEST)
        assert path.read_bytes() == b"rows of somebody"
        file.install()
        assert before.read() == b"rows of somebody"
    assert path.stat().st_mode & 0o777 == 0o600
    file.close()


@pytest.fixture
def small_disk() -> Iterator[None]:
    """A limit of the file size stands in for a full disk: allocation fails alike."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALLEST + 2 * PAGE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_disk")
def test_no_room_is_an_error_at_creation(path: Path) -> None:
    with pytest.raises(CommandError, match="cannot reserve"):
        RingFile(path, 2 * SMALLEST)
    assert list(path.parent.iterdir()) == []
    path.write_bytes(b"rows of a trace that was killed")
    with pytest.raises(CommandError, match="cannot reserve"):
        RingFile(path, 2 * SMALLEST)
    assert path.read_bytes() == b"rows of a trace that was killed"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("small_disk")
def test_no_room_for_a_description_leaves_the_one_before(path: Path) -> None:
    file, staging = backed(path)
    write(staging, number_row(1))
    with pytest.raises(CommandError, match="cannot reserve"):
        file.describe(describe((NUMBERS,), "x86_64", {}, [(at, "s") for at in range(10_000)]))
    check(recover(path), [number_row(1)])
    staging.close()
    file.close()


def test_a_file_that_is_never_installed_leaves_the_one_there(path: Path) -> None:
    path.write_bytes(b"rows of a trace that was killed")
    RingFile(path, SMALLEST).close()
    assert path.read_bytes() == b"rows of a trace that was killed"
    assert list(path.parent.iterdir()) == [path]


def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "out.ring", tmp_path):
        with pytest.raises(CommandError, match="cannot create"):
            RingFile(path, SMALLEST)
