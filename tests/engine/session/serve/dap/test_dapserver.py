"""An editor debugs programs: what it asks, what it is told, by the protocol's own schema."""

import base64
import errno
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build, tool
from dapkit import RefusedError, front_end
from sysroot import CHECKOUT

from engine.session.serve.dap.sources import SourceNames

STRUCTS = CHECKOUT / "samples" / "bin" / "x86_64" / "structs"
SOURCE = str(CHECKOUT / "samples" / "structs.c")
PROGRAM = """\
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct pair { int left, right; char name[8]; struct pair *next; };
long table[300];
struct pair last = { 1, 2, "last", 0 };
volatile long counter;
static void on(int number)
{
    counter += number;
}
__attribute__((noinline)) long set(int i, long v)
{
    struct pair one = { i, (int) v, "one", &last };
    table[i & 3] = v;
    counter++;
    return v + one.left;
}
int main(int argc, char **argv)
{
    char line[64];
    signal(SIGUSR1, on);
    for (int i = 0; i < 8; i++)
        set(i, i * 11);
    puts("ready");
    if (argc > 1 && !strcmp(argv[1], "signal"))
        raise(SIGUSR1);
    if (argc > 1 && !strcmp(argv[1], "abort"))
        abort();
    if (argc > 1 && !strcmp(argv[1], "spin"))
        for (;;)
            counter++;
    if (argc > 1 && !strcmp(argv[1], "read") && fgets(line, sizeof line, stdin)) {
        printf("%s read %s", getenv("WHO"), line);
        fprintf(stderr, "%c", line[0]);
    }
    if (argc > 1 && !strcmp(argv[1], "terminal")) {
        write(0, "to 0\\n", 5);
        write(open("/dev/tty", O_RDWR), "to /dev/tty\\n", 12);
    }
    return 7;
}
"""


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(PROGRAM.split("\n"), 1) if text in line)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("debugged"), "debugged", PROGRAM, "-g", "-static")


def test_values_of_frames() -> None:
    with front_end() as editor:
        editor.launch(STRUCTS)
        placed = editor.ask(
            "setBreakpoints", source={"path": SOURCE}, breakpoints=[{"line": 54}, {"line": 4000}]
        )["breakpoints"]
        assert [one["verified"] for one in placed] == [True, False]
        assert placed[0]["line"] == 54
        assert "No line 4000" in placed[1]["message"]
        stop = editor.go()
        assert stop["reason"] == "breakpoint"
        assert stop["hitBreakpointIds"] == [placed[0]["id"]]
        top, caller = editor.frames(stop["threadId"])
        assert (top["name"], top["line"], top["source"]["path"]) == ("transfer", 54, SOURCE)
        assert caller["name"] == "main"
        payment = editor.scope(top, "Arguments")["payment"]
        assert payment["type"] == "struct payment *"
        parts = editor.inside(payment)
        assert parts["amount"]["value"] == "300"
        assert parts["kind"]["value"] == "TRANSFER"
        to = editor.inside(parts["to"])
        assert to["level"]["value"] == "2"  # a bit-field
        assert to["home"]["evaluateName"] == "payment->to->home"
        home = editor.inside(to["home"])
        assert home["street"]["value"].startswith('"Station Street')
        assert editor.inside(home["street"])["[1]"]["value"] == "116 't'"
        assert editor.value(to["balance"]["evaluateName"], frameId=top["id"]) == "-35"
        assert editor.scope(caller, "Locals")["refused"]["value"] == "0"
        registers = editor.scope(top, "Registers")
        assert registers["rip"]["value"] == "0x400780 <transfer>"
        assert "xmm0" in editor.inside(registers["Vector"])
        # Numbers of this stop mean nothing at another one.
        editor.run("next")
        with pytest.raises(RefusedError, match="of another stop"):
            editor.inside(payment)
        with pytest.raises(RefusedError, match="of another stop"):
            editor.ask("scopes", frameId=top["id"])


def test_values_are_set_and_watched(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program)
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "set", "condition": "i == 5"}])
        stop = editor.go()
        assert stop["reason"] == "function breakpoint"
        top = editor.top(stop)
        editor.run("next")
        top = editor.top(stop)
        scope = next(
            one for one in editor.ask("scopes", frameId=top["id"])["scopes"]
            if one["name"] == "Arguments"
        )  # fmt: skip
        done = editor.ask(
            "setVariable", variablesReference=scope["variablesReference"], name="v", value="i + 1"
        )
        assert done["value"] == "6"
        assert editor.event("invalidated")["body"]["areas"] == ["variables"]
        assert editor.ask("setExpression", expression="table[2]", value="0x77")["value"] == "119"
        assert editor.value("table[2]", context="watch", format={"hex": True}) == "0x77"
        editor.ask("setExpression", expression="$rax", value="12")
        assert editor.value("$rax", context="hover") == "12"
        with pytest.raises(RefusedError, match='No symbol "nothing"'):
            editor.value("nothing")
        # Bytes that are watched, until they are written.
        info = editor.ask("dataBreakpointInfo", name="counter", frameId=top["id"])
        assert info["accessTypes"] == ["read", "write", "readWrite"]
        nowhere = editor.ask("dataBreakpointInfo", name="1 + 1")
        assert nowhere["dataId"] is None
        placed = editor.ask(
            "setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}]
        )["breakpoints"]
        assert placed[0]["verified"]
        stop = editor.run()
        assert stop["reason"] == "data breakpoint"
        assert stop["hitBreakpointIds"] == [placed[0]["id"]]
        assert "Old value = 5 New value = 6" in stop["text"]
        assert editor.value("table[1]") == "6"  # what v was set to
        # An array in pages.
        whole = editor.ask("evaluate", expression="table")
        assert whole["indexedVariables"] == 300
        page = editor.ask(
            "variables", variablesReference=whole["variablesReference"], filter="indexed",
            start=200, count=3,
        )["variables"]  # fmt: skip
        assert [one["name"] for one in page] == ["[200]", "[201]", "[202]"]


def test_hits_are_counted_logged_and_conditional(program: Path) -> None:
    source = {"path": f"{program}.c"}
    with front_end() as editor:
        editor.launch(program)
        log = {"line": line_of("table[i & 3]"), "logMessage": "set {i}: {v} {nothing}, {one.name}"}
        placed = editor.ask(
            "setBreakpoints", source=source,
            breakpoints=[
                {"line": line_of("counter++"), "hitCondition": "% 3"},
                {**log, "condition": "i > 5"},
                {"line": line_of("counter++"), "hitCondition": "often"},
            ],
        )["breakpoints"]  # fmt: skip
        assert [one["verified"] for one in placed] == [True, True, False]
        assert "hitCondition: often is none of" in placed[2]["message"]
        stop = editor.go()
        assert editor.value("i") == "2"
        assert stop["hitBreakpointIds"] == [placed[0]["id"]]
        stop = editor.run()
        assert editor.value("i") == "5"
        assert editor.output("console") == ""
        editor.ask("setBreakpoints", source=source, breakpoints=[log])
        editor.ask("continue", threadId=stop["threadId"])
        assert editor.event("exited")["body"]["exitCode"] == 7
        said = [line for line in editor.output("console").splitlines() if line.startswith("set ")]
        assert [line[:9] for line in said] == ["set 6: 66", "set 7: 77"]
        assert 'No symbol "nothing" in current context.>, "one' in said[0]
        logged = [
            one for one in editor.all if "line" in one.get("body", {}) and "set 6" in str(one)
        ]
        assert logged[0]["body"]["line"] == log["line"]
        assert editor.output() == "ready\n"


def test_steps_and_instructions(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, stopAtBeginningOfMainSubprogram=True)
        stop = editor.go()
        assert (stop["reason"], editor.top(stop)["name"]) == ("entry", "main")
        while editor.top(stop)["line"] != line_of("set(i, i"):
            stop = editor.run("next")
        stop = editor.run("stepIn")
        assert (stop["reason"], editor.top(stop)["name"]) == ("step", "set")
        stop = editor.run("stepOut")
        assert editor.top(stop)["name"] == "main"
        before = editor.top(stop)["instructionPointerReference"]
        code = editor.ask("disassemble", memoryReference=before, instructionCount=3)
        second = code["instructions"][1]["address"]
        editor.run("next", granularity="instruction")
        assert editor.top(stop)["instructionPointerReference"] == second
        # The same instructions from in front of it and from behind.
        around = editor.ask(
            "disassemble", memoryReference=second, instructionOffset=-6, instructionCount=10
        )["instructions"]
        assert len(around) == 10
        assert around[6]["address"] == second
        assert around[5]["address"] == before
        lines = [one["line"] for one in around if "line" in one]
        assert lines[-2:] == [line_of("for (int i"), line_of("puts")]
        placed = editor.ask(
            "setInstructionBreakpoints",
            breakpoints=[{"instructionReference": around[8]["address"]}],
        )["breakpoints"]
        assert placed[0]["instructionReference"] == around[8]["address"]
        stop = editor.run()
        assert stop["reason"] == "instruction breakpoint"
        # On at another line.
        targets = editor.ask(
            "gotoTargets", source={"path": f"{program}.c"}, line=line_of('puts("ready")')
        )["targets"]
        stop = editor.run("goto", targetId=targets[0]["id"])
        assert (stop["reason"], editor.top(stop)["line"]) == ("goto", line_of('puts("ready")'))
        where = editor.ask("evaluate", expression="&last")["memoryReference"]
        data = editor.ask("readMemory", memoryReference=where, count=8)
        assert base64.b64decode(data["data"]) == b"\1\0\0\0\2\0\0\0"
        fresh = base64.b64encode(b"\x09").decode()
        assert editor.ask("writeMemory", memoryReference=where, data=fresh)["bytesWritten"] == 1
        assert editor.event("memory")["body"]["count"] == 1
        assert editor.value("last.left") == "9"
        nothing = editor.ask("readMemory", memoryReference="0x10", count=16)
        assert nothing["unreadableBytes"] == 16
        holes = editor.ask("disassemble", memoryReference="0x0", instructionCount=2)
        assert [one["presentationHint"] for one in holes["instructions"]] == ["invalid"] * 2
        far = editor.ask(
            "disassemble", memoryReference="0x8000", instructionOffset=-5000, instructionCount=3
        )["instructions"]  # fmt: skip
        assert [one["address"] for one in far] == ["0x6c78", "0x6c79", "0x6c7a"]


def test_signals_stop_a_guest_if_they_are_to(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, args=["signal"])
        placed = editor.ask(
            "setExceptionBreakpoints", filters=["fatal", "throw"],
            filterOptions=[{"filterId": "signals", "condition": "SIGUSR1"}, {"filterId": "none"}],
        )["breakpoints"]  # fmt: skip
        assert [one["verified"] for one in placed] == [True, False, True, False]
        stop = editor.go()
        assert (stop["reason"], stop["text"]) == ("exception", "SIGUSR1")
        info = editor.ask("exceptionInfo", threadId=stop["threadId"])
        assert info["exceptionId"] == "SIGUSR1"
        assert info["description"] == "User defined signal 1"
        editor.ask("continue", threadId=stop["threadId"])
        assert editor.event("exited")["body"]["exitCode"] == 7
    with front_end() as editor:
        editor.launch(program, args=["abort"])
        editor.ask("setExceptionBreakpoints", filters=["fatal"])
        stop = editor.go()
        assert stop["text"] == "SIGABRT"
        assert "main" in [frame["name"] for frame in editor.frames(stop["threadId"])]
        editor.ask("continue", threadId=stop["threadId"])
        editor.event("terminated")
        assert "terminated with signal SIGABRT" in editor.output("console")


def test_what_is_recorded_comes_with_an_answer_while_the_guest_runs(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, args=["spin"], stopOnEntry=True)
        thread = editor.go()["threadId"]
        editor.ask("evaluate", expression="p:g/hit set", context="repl")
        editor.ask("continue", threadId=thread)
        end = time.monotonic() + 60
        while "hit: (set" not in editor.output("console") and time.monotonic() < end:
            editor.ask("threads")
        assert "hit: (set" in editor.output("console")
        with pytest.raises(RefusedError, match="notStopped"):
            editor.ask("stackTrace", threadId=thread)
        editor.ask("pause", threadId=thread)
        assert editor.stop()["reason"] == "pause"


def test_a_guest_that_runs_is_asked_and_stopped(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, args=["spin"])
        editor.ask("configurationDone")
        thread = editor.ask("threads")["threads"][0]["id"]
        with pytest.raises(RefusedError, match="notStopped"):
            editor.ask("stackTrace", threadId=thread)
        with pytest.raises(RefusedError, match="notStopped"):
            editor.value("counter")
        editor.ask("pause", threadId=thread)
        stop = editor.stop()
        assert (stop["reason"], stop["threadId"]) == ("pause", thread)
        while "main" not in [frame["name"] for frame in editor.frames(thread)]:
            editor.ask("continue", threadId=thread)
            editor.ask("pause", threadId=thread)
            editor.stop()
        # A breakpoint that comes while it runs.
        editor.ask("continue", threadId=thread)
        line = next(
            at for at, text in enumerate(PROGRAM.split("\n"), 1) if text.startswith(" " * 12)
        )
        placed = editor.ask(
            "setBreakpoints", source={"path": f"{program}.c"}, breakpoints=[{"line": line}]
        )["breakpoints"]
        stop = editor.stop()
        assert stop["hitBreakpointIds"] == [placed[0]["id"]]
        editor.ask("setBreakpoints", source={"path": f"{program}.c"}, breakpoints=[])
        editor.ask("continue", threadId=thread)
        # From the beginning, in the middle of the run.
        editor.ask("restart", arguments={"program": str(program), "stopOnEntry": True})
        assert editor.stop()["reason"] == "entry"
        editor.ask("continue", threadId=thread)
        assert editor.event("exited")["body"]["exitCode"] == 7
        editor.event("terminated")
        editor.ask("disconnect")


def test_what_a_program_reads_and_writes(program: Path) -> None:
    with front_end("--env", "WHO=nobody", guest=[str(program), "read"]) as editor:
        editor.launch(env={"WHO": "it"})
        editor.ask("configurationDone")
        while "ready" not in editor.output():
            editor.event("output")
        editor.ask("evaluate", expression="\u00fcber all", context="repl")
        assert editor.event("exited")["body"]["exitCode"] == 7
        assert editor.output() == "ready\nit read \u00fcber all\n"
        assert editor.output("stderr").startswith("\\x")
    with front_end() as editor:
        editor.launch(program, args=["terminal"])
        editor.ask("configurationDone")
        editor.event("exited")
        assert editor.output() == "ready\nto 0\nto /dev/tty\n"


def test_lines_of_words(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, stopAtBeginningOfMainSubprogram=True)
        thread = editor.go()["threadId"]

        def typed(text: str) -> str:
            return editor.value(text, context="repl")

        assert typed("p:demo/set set %si") == "p:demo/set: done"
        assert typed("print sizeof(struct pair)") == "$1 = 24"
        assert typed("last") == '{left = 1, right = 2, name = "last\\000\\000\\000", next = 0x0}'
        assert "Breakpoint" in typed("break set if i == 3")
        new = editor.event("breakpoint")["body"]
        assert (new["reason"], new["breakpoint"]["verified"]) == ("new", True)
        typed("continue")
        assert editor.event("continued")["body"]["threadId"] == thread
        stop = editor.stop()
        assert stop["hitBreakpointIds"] == [new["breakpoint"]["id"]]
        assert typed("info args") == "i = 3\nv = 33"
        assert len(typed("events 2").splitlines()) == 2
        assert editor.output("console").count("(set") == 4
        typed("delete")
        gone = editor.event("breakpoint")["body"]
        assert (gone["reason"], gone["breakpoint"]["id"]) == ("removed", new["breakpoint"]["id"])
        with pytest.raises(RefusedError, match='Undefined command: "nonsense"'):
            typed("nonsense at all")
        assert "p:EVENT" in typed("help")
        found = editor.ask("completions", text="reverse-f", column=10)["targets"]
        assert [one["label"] for one in found] == ["reverse-finish"]
        # What moves the guest is answered first, as what it prints may be long in coming.
        assert typed("next") == ""
        assert editor.stop()["reason"] == "step"
        assert f"{line_of('table[i & 3]')}\t" in editor.output("console")
        # What is refused has moved nothing, and what was known still holds.
        top = editor.top(stop)
        for line, why in (("jump 99999", "No line 99999"), ("until nonsense", '"nonsense"')):
            editor.events.clear()
            with pytest.raises(RefusedError, match=why):
                typed(line)
            assert "continued" not in [event["event"] for event in editor.events]
            assert editor.scope(top, "Arguments")["i"]["value"] == "3"
        typed("kill")
        editor.event("terminated")
        typed("run")
        assert editor.event("exited")["body"]["exitCode"] == 7


def test_going_back(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, record=True)
        capable = next(one for one in editor.all if one.get("event") == "capabilities")
        assert capable["body"]["capabilities"] == {"supportsStepBack": True}
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "set"}])
        stop = editor.go()
        for _ in range(3):
            stop = editor.run()
        assert editor.value("i") == "3"
        assert editor.run("reverseContinue")["reason"] == "function breakpoint"
        assert editor.value("i") == "2"
        at = editor.top(stop)["instructionPointerReference"]
        editor.run("next")
        stop = editor.run("stepBack", granularity="instruction")
        assert editor.value("i") == "2"
        editor.run("stepBack")
        editor.ask("setFunctionBreakpoints", breakpoints=[])
        stop = editor.run("reverseContinue")
        assert (stop["reason"], stop["description"]) == (
            "entry", "No more reverse-execution history."
        )  # fmt: skip
        assert editor.run()["reason"] == "pause"  # in the present
        assert editor.value("i") == "3"
        stop = editor.run()
        assert "past is there" in stop["description"]
        assert editor.value("counter") == "8"
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "set"}])
        stop = editor.run("reverseContinue")
        assert editor.value("i") == "7"
        assert editor.top(stop)["instructionPointerReference"] == at


def test_files_of_a_program(program: Path) -> None:
    with front_end() as editor:
        editor.launch(program, stopOnEntry=True)
        assert editor.go()["reason"] == "entry"
        loaded = [one["path"] for one in editor.ask("loadedSources")["sources"]]
        assert f"{program}.c" in loaded
        text = editor.ask("source", source={"path": f"{program}.c"}, sourceReference=0)
        assert text["content"].splitlines() == PROGRAM.splitlines()
        modules = editor.ask("modules")
        assert str(program) in [one["path"] for one in modules["modules"]]
        found = editor.ask(
            "breakpointLocations", source={"path": f"{program}.c"},
            line=line_of("long set"), endLine=line_of("return v +"),
        )["breakpoints"]  # fmt: skip
        assert line_of("table[i & 3]") in [one["line"] for one in found]
        with pytest.raises(RefusedError, match="the file is not there"):
            editor.ask("source", source={"path": "/nowhere.c"}, sourceReference=0)


def test_the_host_refuses_a_file(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(names: SourceNames, path: str, first: int, last: int) -> Iterator[int]:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(SourceNames, "lines", refused)
    with front_end() as editor:
        editor.launch(program, stopOnEntry=True)
        editor.go()
        with pytest.raises(RefusedError, match=r"breakpointLocations: .*Input/output error.*x\.c"):
            editor.ask("breakpointLocations", source={"path": "/x.c"}, line=1)
        assert editor.ask("threads")["threads"]  # the session goes on


def test_no_guest_yet(program: Path) -> None:
    with front_end() as editor:
        with pytest.raises(RefusedError, match="launch comes first"):
            editor.ask("threads")
        editor.ask("initialize", adapterID="x")
        for wanted, why in (
            ({}, "program: the ELF file to run is missing"),
            ({"program": "/nowhere"}, "/nowhere"),
            ({"program": f"{program}.c"}, "is a text file, not an ELF program"),
            ({"program": str(program), "options": ["--colour"]}, "No such option"),
            ({"program": str(program), "args": "x"}, "Expected `array`"),
            ({"program": "/a\0b"}, "launch: a text with a NUL in it"),
        ):
            with pytest.raises(RefusedError, match=why):
                editor.ask("launch", **wanted)
        with pytest.raises(RefusedError, match="launched here"):
            editor.ask("attach")
        editor.launch(program, noDebug=True)
        placed = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "set"}])
        assert not placed["breakpoints"][0]["verified"]
        with pytest.raises(RefusedError, match="setBreakpoints: a text with a NUL"):
            editor.ask("setBreakpoints", source={"path": "/a\0b"}, breakpoints=[{"line": 1}])
        with pytest.raises(RefusedError, match="there is a guest"):
            editor.ask("launch", program=str(program))
        editor.ask("configurationDone")
        assert editor.event("exited")["body"]["exitCode"] == 7
    # A signal that would end the program does, and no past is offered.
    with front_end() as editor:
        editor.launch(program, noDebug=True, record=True, args=["abort"])
        editor.ask("configurationDone")
        editor.event("terminated")
        assert "stopped" not in [message.get("event") for message in editor.all]
        assert "terminated with signal SIGABRT" in editor.output("console")


THREADS = """
#include <pthread.h>
#include <unistd.h>
#include <stdexcept>
#include <sys/wait.h>
static void *work(void *p) { return p; }
int main()
{
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    pthread_join(other, 0);
    try { throw std::runtime_error("bad"); } catch (std::exception &) { }
    if (!fork())
        _exit(3);
    wait(0);
    return 5;
}
"""


@pytest.mark.slow
def test_threads_and_other_things_that_stop(tmp_path: Path) -> None:
    guest = str(tmp_path / "threads")
    (tmp_path / "threads.cc").write_text(THREADS)
    command = [tool("g++"), "-g", "-pthread", "-o", guest, "threads.cc"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with front_end() as editor:
        editor.launch(guest)
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "work"}])
        editor.ask("setExceptionBreakpoints", filters=["throw", "catch", "fork"])
        stop = editor.go()
        first, second = (one["id"] for one in editor.ask("threads")["threads"])
        assert stop["threadId"] == second
        assert editor.frames(second)[0]["name"] == "work(void*)"
        assert editor.frames(first)[-1]["name"] == "main"
        told = [editor.run()["text"] for _ in range(3)]
        assert told[:2] == ["exception thrown", "exception caught"]
        assert told[2].startswith("forked process")
        editor.ask("continue", threadId=first)
        assert editor.event("exited")["body"]["exitCode"] == 5


@pytest.mark.slow
def test_another_architecture_and_its_core_file(tmp_path: Path) -> None:
    gcc = tool("aarch64-linux-gnu-gcc")
    (tmp_path / "debugged.c").write_text(PROGRAM)
    guest, core = str(tmp_path / "debugged"), str(tmp_path / "core")
    subprocess.run([gcc, "-g", "-static", "-o", guest, "debugged.c"], cwd=tmp_path, check=True)
    with front_end() as editor:
        editor.launch(guest)
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "set", "hitCondition": "== 3"}])
        top = editor.top(editor.go())
        assert editor.scope(top, "Arguments")["v"]["value"] == "22"
        assert "<set+" in editor.scope(top, "Registers")["pc"]["value"]
        assert editor.value(f"gcore {core}", context="repl") == f"Saved corefile {core}"
    with front_end() as editor:
        editor.launch(guest, core=core)
        stop = editor.go()
        assert "core file of debugged" in stop["description"]
        assert editor.scope(editor.top(stop), "Arguments")["v"]["value"] == "22"
        with pytest.raises(RefusedError, match="a core file does not move"):
            editor.ask("continue", threadId=stop["threadId"])
