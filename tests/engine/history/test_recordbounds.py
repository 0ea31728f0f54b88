"""Recordings that somebody else has written: bombs, and values that make no sense."""

import random
import struct
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backports import zstd
from guestrun import run
from hypothesis import given
from hypothesis import strategies as st
from recordedkit import finish, recorded

from engine.errors import KprobeTuiError
from engine.history.entryshapes import check_entry
from engine.history.pieces import checksum
from engine.history.recordbounds import RecordingError, structure
from engine.history.recordfile import read_file
from engine.session.guest.past import replayed
from engine.session.program.recorded import OpenedRecording

SORT = "samples/bin/x86_64/structs"
_FRONT = 16
_PIECE = struct.Struct("<4sIIIQ")
_MANY = 4 << 20
_EMPTY_LISTS = b"\xdd" + _MANY.to_bytes(4, "big") + b"\x90" * _MANY
_ODD: tuple[Any, ...] = (
    *(0, 1, -1, 1 << 31, 1 << 63, (1 << 64) - 1, -(1 << 63), 4097, None, True, 1.5),
    *(float("nan"), "", b"", "x" * 70_000, b"\0" * 70_000, [], {}, [[]] * 50, [1, 2, 3]),
)

Pieces = list[tuple[bytes, int, bytes]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording as it was written."""
    return recorded(tmp_path_factory.mktemp("bounds"), str(Path.cwd() / SORT))


def pieces_of(path: Path) -> Pieces:
    """Kind, tick and content of each piece."""
    data, at, found = path.read_bytes(), _FRONT, []
    while at < len(data):
        kind, stored, _, _, clock = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        found.append((kind, clock, zstd.decompress(data[at : at + stored])))
        at += stored
    return found


def write(path: Path, like: Path, pieces: Pieces) -> Path:
    """A recording of some pieces, with the checksums that they have."""
    out = [like.read_bytes()[:_FRONT]]
    for kind, clock, raw in pieces:
        stored = zstd.compress(raw, level=3)
        crc = checksum(kind, len(stored), len(raw), clock, stored)
        out.append(_PIECE.pack(kind, len(stored), len(raw), crc, clock) + stored)
    path.write_bytes(b"".join(out))
    return path


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a value."""
    keys = (
        range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from spots(value[key], (*path, key))


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats()
        | st.binary(max_size=300) | st.text(max_size=300),
        lambda each: st.lists(each, max_size=20) | st.dictionaries(st.text(max_size=9), each),
    )
)  # fmt: skip
def test_structure_is_what_is_no_text(value: object) -> None:
    """The size of texts and bytes does not count; the heads of all values do."""

    def payload(one: object) -> int:
        if isinstance(one, str):
            return len(one.encode())
        if isinstance(one, bytes):
            return len(one)
        if isinstance(one, dict):
            return sum(payload(key) + payload(each) for key, each in one.items())
        return sum(map(payload, one)) if isinstance(one, list) else 0

    raw = msgspec.msgpack.encode(value)
    assert len(raw) - payload(value) <= 10 * structure(raw, 1 << 30)
    assert structure(raw, 1 << 30) <= 2 * (len(raw) - payload(value)) + 2


def test_a_bomb_is_refused_before_it_is_unpacked(whole: Path, tmp_path: Path) -> None:
    """The sum that the heads of the pieces tell counts, and the message names the way out."""
    file = msgspec.msgpack.encode({"paths": ["/b"], "data": bytes(60 << 20)})
    first, *rest = pieces_of(whole)
    path = write(tmp_path / "bomb", whole, [first, *[(b"FILE", 0, file)] * 3, *rest])
    assert path.stat().st_size < 1 << 16
    with pytest.raises(RecordingError, match=r"KPROBE_TUI_UNPACK_MAX=181M"):
        read_file(str(path))


def test_the_user_may_allow_more(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = msgspec.msgpack.encode({"paths": ["/b"], "data": bytes(60 << 20)})
    first, *rest = pieces_of(whole)
    path = write(tmp_path / "bomb", whole, [first, *[(b"FILE", 0, file)] * 2, *rest])
    with pytest.raises(RecordingError):
        read_file(str(path))
    monkeypatch.setenv("KPROBE_TUI_UNPACK_MAX", "121M")
    assert not read_file(str(path)).damage


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (b"ENTR", "inputs", _EMPTY_LISTS),
        (b"ENTR", "contents", _EMPTY_LISTS.replace(b"\x90", b"\xa0")),
        (b"ENTR", "entries", b"\xdd" + (_MANY // 6).to_bytes(4, "big")
         + b"\x95\0\0\1\0\x90" * (_MANY // 6)),
        (b"FILE", "paths", _EMPTY_LISTS.replace(b"\x90", b"\xa0")),
        (b"INPT", "calls", _EMPTY_LISTS),
        (b"STRT", "args", _EMPTY_LISTS.replace(b"\x90", b"\xa0")),
    ],
)  # fmt: skip
def test_small_values_are_counted_before_they_are_made(
    whole: Path, tmp_path: Path, kind: bytes, key: str, value: bytes
) -> None:
    """Four million empty lists take 4 KB in the file, and 250 MB as objects."""
    raw = msgspec.msgpack.encode({key: msgspec.Raw(value)})
    first, *rest = pieces_of(whole)
    path = write(tmp_path / "bomb", whole, [first, (kind, 0, raw), *rest])
    with pytest.raises(RecordingError, match=r"small values"):
        read_file(str(path))


@pytest.mark.parametrize(
    "entry",
    [
        b"\x95\xff\0\1\0\x90",  # a tick below 0
        b"\x95\0\0\1\0" + _EMPTY_LISTS + b"\x90" * 100_000,
        b"\x95\0\0\1\0" + b"\x91" * 100_000,
        b"\x90",
    ],
)
def test_a_damaged_entry_ends_the_recording_there(
    whole: Path, tmp_path: Path, entry: bytes
) -> None:
    """What is before it is good; the exit code is that of a bad file."""
    raw = msgspec.msgpack.encode({"entries": [msgspec.Raw(entry)]})
    pieces = pieces_of(whole)
    path = write(tmp_path / "bad", whole, [*pieces[:-1], (b"ENTR", 0, raw), pieces[-1]])
    assert read_file(str(path)).damage.startswith("damaged at byte ")


def test_the_command_says_where(whole: Path, tmp_path: Path) -> None:
    raw = msgspec.msgpack.encode({"entries": [msgspec.Raw(b"\x95\xff\0\1\0\x90")]})
    first, *rest = pieces_of(whole)
    path = write(tmp_path / "bad", whole, [first, *rest[:2], (b"ENTR", 0, raw), *rest[2:]])
    done = run("replay", str(path), cwd=tmp_path)
    assert done.code == 2
    assert "damaged at byte" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("cause", "ops"),
    [
        (6, []),
        (1, [[]]),
        (1, [[99]]),
        (1, [[1, 0]]),
        (1, [[1, "0", b""]]),
        (1, [[1, 0, b"", 0]]),
        (1, [[17, 0, 0, 4096, [[0, 4096, 8, 0, "", 0, False, 0, 0, False, 0, 0, -1]]]]),
        (1, [[23, 0, [[b"a", 0]], b"", [], [], [0, 0], [0, 0], b""]]),
        (1, [[27, 1, 0, 0, [1]]]),
        (1, [[True]]),
    ],
)
def test_values_of_other_kinds_are_found_at_once(cause: int, ops: list[Any]) -> None:
    """They would be found wrong much later, where nobody thinks of the file any more."""
    with pytest.raises(ValueError, match=r"kind|stop|Expected|Invalid"):
        check_entry(cause, ops)


def test_the_recorded_entries_have_their_shapes(whole: Path) -> None:
    journal = OpenedRecording(str(whole))._recorded.journal
    assert len(list(journal)) == journal.total


def mutants(whole: Path, count: int, seed: int) -> Iterator[Pieces]:
    """Recordings with a value or two replaced, dropped or doubled; with right checksums."""
    random.seed(seed)
    pieces = pieces_of(whole)
    for _ in range(count):
        number = random.randrange(len(pieces))
        kind, clock, raw = pieces[number]
        value = msgspec.msgpack.decode(raw)
        for _ in range(random.choice([1, 1, 2])):
            places = list(spots(value))
            *path, last = random.choice(places)
            holder = value
            for key in path:
                holder = holder[key]
            if isinstance(holder, list) and random.random() < 0.2:
                holder.insert(last, deepcopy(holder[last]))
            elif random.random() < 0.2:
                del holder[last]
            elif isinstance(holder[last], int) and random.random() < 0.5:
                other = holder[last] + random.choice([-4096, -1, 1, 8, 1 << 20])
                holder[last] = min(max(other, 0), (1 << 64) - 1)
            else:
                holder[last] = deepcopy(random.choice(_ODD))
        if random.random() < 0.1:
            kind, clock = random.choice(pieces)[0], random.choice([0, (1 << 64) - 1])
        made = list(pieces)
        made[number] = kind, clock, msgspec.msgpack.encode(value)
        yield made


def lived_through(path: Path) -> None:
    """Replay a recording as the command does."""
    recording = OpenedRecording(str(path))
    session = replayed(recording.opened(recording.config("auto", "auto", follow=True)))
    session.kernel.output = lambda descriptor, data: None
    try:
        finish(session)
    finally:
        session.close()


@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_no_mutant_is_anything_but_an_error_of_ours(
    whole: Path, tmp_path: Path, count: int
) -> None:
    ended = 0
    for pieces in mutants(whole, count, seed=count):
        try:
            lived_through(write(tmp_path / "mutant", whole, pieces))
            ended += 1
        except KprobeTuiError:
            continue
    assert 0 < ended < count
