"""A breakpoint of several places stands wherever a probe can be; the others are told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

_SOURCE = """
void (*volatile through)(void);
int went;
static void nothing(void) { went++; }
static inline __attribute__((always_inline)) void through_memory(void) {
    asm volatile("call *%0" : : "m"(through) : "memory");
}
namespace one { __attribute__((naked, used)) void trapped() { asm("int3; ret"); } }
namespace two { __attribute__((noinline)) void trapped() { went += 2; } }
namespace three { __attribute__((naked, used)) void doomed() { asm("int3; ret"); } }
int main() {
    through = nothing;
    through_memory();
    two::trapped();
    through_memory();
    return went != 4;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Functions of one name of which one begins with an instruction that nobody may probe."""
    folder = tmp_path_factory.mktemp("places")
    return build(folder, "places", _SOURCE, "-g", "-O1", "-mno-red-zone", compiler="g++")


@pytest.fixture
def guest(program: Path) -> Iterator[Held]:
    with held(str(program)) as found:
        Console(found.control, found._tell)
        found.do(cmd.TypedLine("tbreak main"), cmd.Continue())
        yield found


def _told(guest: Held, line: str) -> str:
    guest.do(cmd.TypedLine(line))
    return guest.all(ev.Done)[-1].text


def test_a_place_that_cannot_be_probed_leaves_the_others(guest: Held) -> None:
    told = _told(guest, "break trapped").splitlines()
    assert told[0].startswith("Cannot insert a breakpoint at 0x")
    assert "trapped" in told[0]
    assert told[0].endswith("software interrupt: never probed")
    assert told[1].startswith("Breakpoint ")
    guest.do(cmd.Continue())
    assert "trapped" in guest.view.reason


def test_none_that_can_be_probed_is_an_error(guest: Held) -> None:
    failure = guest.fail(cmd.TypedLine("break doomed"))
    assert failure is not None
    assert "doomed" in failure.text
    assert not guest.view.probes


def test_a_call_through_memory_is_stepped_out_of_line(guest: Held) -> None:
    told = _told(guest, "break through_memory")
    assert told.endswith("(2 locations)")
    for part in (1, 2):
        guest.do(cmd.Continue())
        assert guest.view.reason == f"breakpoint 2.{part}: through_memory()"
    guest.do(cmd.Continue())
    assert guest.view.exit_code == 0


def test_a_program_that_a_signal_has_killed_is_looked_at_by_words(tmp_path: Path) -> None:
    source = (
        "#include <stdlib.h>\n"
        "int deep(int n) { return n ? deep(n - 1) + n : (abort(), 0); }\n"
        "int main() { return deep(3); }\n"
    )
    program = build(tmp_path, "deep", source, "-g", "-O0")
    with held(str(program)) as guest:
        Console(guest.control, guest._tell)
        guest.do(cmd.TypedLine("run"))
        told = guest.all(ev.Done)[-1].text
        assert "\nProgram terminated with signal SIGABRT, Aborted.\n" in told
        frames = _told(guest, "bt").splitlines()
        assert [line.partition(" in ")[2][:10] for line in frames[-5:-1]] == [
            f"deep (n={number})" for number in range(4)
        ]
        assert _told(guest, f"frame {len(frames) - 2}").endswith("abort(), 0); }")
        assert _told(guest, "print n") == "$1 = 3"
        assert _told(guest, "info registers rip").startswith("rip            0x")
        for word in ("stepi", "print deep(0)", "set var n = 4", "set $rax = 1"):
            assert guest.fail(cmd.TypedLine(word)) is not None, word


def test_hook_stop_is_carried_out_where_a_breakpoint_is_silent(guest: Held) -> None:
    guest.do(cmd.TypedLine("define hook-stop\necho hooked\\n\nend"))
    guest.do(cmd.TypedLine("break two::trapped"), cmd.TypedLine("commands\nsilent\nend"))
    assert _told(guest, "continue") == "hooked"
