"""The contract of `kprobe-tui bt`: frames, ends, exit codes, what other unwinders print."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from goldenruns import GUESTS
from guestrun import Outcome, run

UNW = str(GUESTS / "amd64" / "unw-O2")
UNW_ARM = str(GUESTS / "arm64" / "unw-O2fp")
DYNAMIC, LIBRARY = "/bin/true", "libc.so.6"
STATIC = str(GUESTS / "amd64" / "guests-static")
CHAIN = ["leaf", "manyregs", "loopcall", "umain", "cstart", "_start"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def bt(home: Path, *words: str) -> Outcome:
    return run("bt", *words, cwd=home)


def frames(done: Outcome) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["frames"]
    return found


def names(done: Outcome) -> list[str]:
    return [frame["function"] for frame in frames(done)]


def test_a_place_in_a_library_is_judged_before_it_is_mapped(home: Path) -> None:
    """It was never reached, without a word."""
    listing = run("disasm", DYNAMIC, f"{LIBRARY}:getpid", cwd=home).out.splitlines()
    assert int(listing[1].split()[0], 16) - int(listing[0].split()[0], 16) > 1
    done = bt(home, "--at", f"{LIBRARY}:getpid+1", DYNAMIC)
    assert (done.code, done.out) == (2, "")
    assert "is in the middle of" in done.err
    never = bt(home, "--at", f"{LIBRARY}:malloc", "--hit", "99999", "-e", "r1:x malloc", DYNAMIC)
    assert never.code == 1
    assert "of 99999 hits" in never.err


@pytest.mark.parametrize("guest", [UNW, UNW_ARM])
def test_json_has_what_the_contract_says(home: Path, guest: str) -> None:
    done = bt(home, "--at", "leaf", "--hit", "3", "--json", guest)
    found = json.loads(done.out)
    assert found["end"] == "the outermost frame has no caller"
    assert [frame["function"] for frame in found["frames"]] == CHAIN
    for frame in found["frames"]:
        assert {"pc", "offset", "module", "file", "line", "cfa", "source", "trampoline"} <= {
            *frame
        }
        assert int(frame["pc"], 16) > 0x400000
        assert int(frame["cfa"], 16) % 8 == 0
        assert (frame["module"], frame["source"]) == (guest, "cfi")
    assert found["frames"][0]["offset"] == 0
    assert (found["frames"][0]["line"], found["frames"][-1]["line"]) == (6, None)


def test_text_has_a_line_for_each_frame(home: Path) -> None:
    done = bt(home, "--at", "leaf", "--hit", "3", UNW)
    *lines, end = done.out.splitlines()
    assert end == "(end: the outermost frame has no caller)"
    assert [line.split()[0] for line in lines] == [f"#{number}" for number in range(6)]
    assert lines[0].startswith("#0  0x0000000000401010 in leaf+0x0 () at ")
    assert lines[0].endswith("unw.c:6")  # the statement of an inlined function, as gdb has it


def test_another_unwinder(home: Path) -> None:
    words = ("--at", "leaf", "--hit", "3", "--json", "-r", "*", "--unwinder", "owens")
    found = names(bt(home, *words, UNW))
    assert found[1:4] == ["manyregs", "kretprobe_trampoline", "loopcall"]


def test_a_system_call_is_the_top_frame(home: Path) -> None:
    found = frames(bt(home, "--syscall", "write", "--json", STATIC, "varargs"))
    assert (found[0]["function"], found[0]["source"]) == ("write", "syscall")
    assert found[1]["module"] == STATIC
    assert [frame["function"] for frame in found][-3:] == [
        "__libc_start_call_main",
        "__libc_start_main",
        "_start",
    ]


def test_through_a_signal_handler(home: Path) -> None:
    done = bt(home, "--at", "u_inhandler", "--json", STATIC, "unwind")
    assert names(done)[:3] == ["u_inhandler", "u_handler", "__restore_rt"]
    arm = str(GUESTS / "arm64" / "guests-static")
    found = frames(bt(home, "--at", "u_inhandler", "--json", arm, "unwind"))
    assert [f["function"] for f in found[:2]] == ["u_inhandler", "u_handler"]
    assert (found[2]["source"], found[2]["module"]) == ("trampoline", "[vdso]")
    assert found[-1]["function"] == "_start"


def test_an_inlined_function_has_a_frame(home: Path) -> None:
    found = frames(bt(home, "--at", "quit+0x13", "--json", UNW))
    assert [f["function"] for f in found[:2]] == ["sys1", "quit"]
    assert found[0]["inlined"]
    assert (found[0]["pc"], found[0]["cfa"]) == (found[1]["pc"], found[1]["cfa"])
    assert found[1]["line"] == 51


def test_registers_of_each_frame(home: Path) -> None:
    found = frames(bt(home, "--at", "leaf", "--hit", "3", "--json", "--registers", UNW))
    for inner, outer in pairwise(found):
        assert outer["registers"]["rsp"] == inner["cfa"]
        assert outer["registers"]["rip"] == outer["pc"]
    assert "rax" in found[0]["registers"]
    assert "rax" not in found[1]["registers"]


def test_the_guest_writes_elsewhere(home: Path) -> None:
    done = bt(home, "--at", "exit", "--json", STATIC, "unwind")
    assert len(done.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--at", "leaf", "--hit", "100000", UNW), 1, "of 100000 hits"),
        (("--at", "nowhere", UNW), 2, "no symbol 'nowhere'"),
        (("--syscall", "nothing", UNW), 2, "has none of that name"),
        ((UNW,), 2, "where?"),
    ],
)
def test_what_goes_wrong(home: Path, words: tuple[str, ...], code: int, text: str) -> None:
    done = bt(home, *words)
    assert done.code == code
    assert text in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
