"""Call stacks of a guest that is a kernel: its own frames, then those of its program."""

import json
import struct

import pytest

from engine.arch.program import ROW_HEAD
from engine.trace.formats import Names, format_named
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.formats.jsonl import JsonLinesFormat
from engine.trace.formats.values import frames, kernel_frames
from engine.trace.rows import HEAD, EventInfo, stack_event

_THREAD = 77
_SYMBOLS = {
    0x60174460: "vfs_read+0x0/0x127",
    0x6017496C: "ksys_read+0x6d/0xa6",
    0x401636: "load+0x21/0x23",
    0x40164E: "both+0x16/0x2c",
}
_KERNEL, _USER = (0x60174460, 0x6017496C), (0x401636, 0x40164E)
_NAMES = Names(lambda address: _SYMBOLS.get(address, hex(address)), lambda thread: b"in%it")
_STACK = stack_event(4, kernel=True)
_HIT = EventInfo(5, "kprobes", "read", (), symbolic=True)
_TABLE = {4: _STACK, 5: _HIT}
_USER_CONTEXT = 2**64 - 512
"""PERF_CONTEXT_USER: the kernel is a program to who reads it, its file is one of the process's."""
_HEAD = "           in%it-77      [000] .....          123: "


def _row(kernel: tuple[int, ...], user: tuple[int, ...]) -> bytes:
    found = kernel + user
    words = ROW_HEAD + 1 + len(found)
    place = found[0]
    return HEAD.pack(4, words, _THREAD) + struct.pack(
        f"<{words - 1}Q", 123, place, len(kernel), *found
    )


def _hit() -> bytes:
    return HEAD.pack(5, ROW_HEAD, _THREAD) + struct.pack("<QQ", 123, _KERNEL[0])


def _text(row: bytes, *options: str) -> str:
    return FtraceFormat(_TABLE, _NAMES, options).rows(row).decode()


def test_a_row_tells_which_frames_are_the_kernels() -> None:
    row = _row(_KERNEL, _USER)
    assert frames(_STACK, row, 0) == _KERNEL + _USER
    assert kernel_frames(_STACK, row, 0) == 2
    assert EventInfo.from_json(_STACK.to_json()) == _STACK
    assert kernel_frames(stack_event(4), row, 0) == 0


def test_a_kernels_frames_are_printed_as_its_own() -> None:
    """As trace_stack_print and print_user_stack do (kernel/trace/trace_output.c)."""
    kernel = f"{_HEAD}<stack trace>\n => vfs_read\n => ksys_read\n"
    user = (
        f"{_HEAD}<user stack trace>\n"
        " => load+0x21/0x23 <0000000000401636>\n"
        " => both+0x16/0x2c <000000000040164e>\n"
    )
    assert _text(_row(_KERNEL, _USER)) == kernel + user
    assert _text(_row(_KERNEL, ())) == kernel
    assert _text(_row((), _USER)) == user
    # What another stack has remembered is not taken for it.
    form = FtraceFormat(_TABLE, _NAMES)
    assert form.rows(_row(_KERNEL, _USER)) == (kernel + user).encode()
    assert form.rows(_row((), _KERNEL + _USER)).count(b"stack trace>") == 1


@pytest.mark.parametrize(
    ("option", "frame"),
    [
        ("sym-offset", "vfs_read+0x0/0x127"),
        ("sym-addr", "vfs_read <0000000060174460>"),
        ("nosym-userobj", "vfs_read"),
    ],
)
def test_options_change_a_kernels_frames(option: str, frame: str) -> None:
    assert f" => {frame}\n" in _text(_row(_KERNEL, _USER), option)


def test_lines_of_json_mark_a_kernels_frames() -> None:
    form = JsonLinesFormat(_TABLE, _NAMES)
    found = json.loads(form.rows(_row(_KERNEL, _USER)))
    assert found["event"] == "ftrace/kernel_stack"
    assert [frame.get("kernel", False) for frame in found["stack"]] == [True, True, False, False]
    assert [int(frame["pc"], 16) for frame in found["stack"]] == [*_KERNEL, *_USER]


def _made(name: str) -> bytes:
    """A file of a format with a hit and its stack."""
    names = Names(_before, lambda thread: b"in%it")
    form = format_named(name)(_TABLE, names)
    found = b""
    for part in (form.header(None, None), form.rows(_hit() + _row(_KERNEL, _USER)), form.end()):
        pieces = [part] if isinstance(part, bytes) else [piece.data for piece in part]
        found += b"".join(pieces)
    return found


def _before(address: int) -> str:
    """Callers are named by the address before that of the return."""
    return _SYMBOLS.get(address) or _SYMBOLS.get(address + 1, hex(address))


def test_a_flame_graph_goes_from_the_program_into_the_kernel() -> None:
    assert _made("folded") == b"in%it;both;load;ksys_read;vfs_read;read 1\n"


@pytest.mark.parametrize("name", ["trace.dat", "perf.data", "ctf"])
def test_other_formats_have_the_frames_alone(name: str) -> None:
    """The word in front of them is none."""
    addresses = struct.pack("<4Q", *_KERNEL, *_USER)
    if name == "perf.data":
        addresses = struct.pack("<6Q", 5, _USER_CONTEXT, *_KERNEL, *_USER)
    assert addresses in _made(name)
    assert struct.pack("<5Q", 2, *_KERNEL, *_USER) not in _made(name)
