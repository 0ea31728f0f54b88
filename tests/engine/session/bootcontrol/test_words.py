"""A booted kernel that stands in a system call: words, types, tasks, places, memory."""

import re
from collections.abc import Iterator

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelimages import AMD64_612

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

pytestmark = [pytest.mark.slow, needs_host_code]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootUser]:
    """Debian's 6.12, in front of the third `openat` of its first program."""
    user = BootUser(AMD64_612, tmp_path_factory.mktemp("boot"), history=False)
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    for _ in range(3):
        user.do(cmd.Continue())
    assert user.view.location == "do_sys_openat2+0x0"
    yield user
    user.close()


def test_values_have_the_kernels_types(user: BootUser) -> None:
    name = user.word("p filename")
    assert re.fullmatch(r'\$\d+ = 0x[0-9a-f]+ "/[^"]*"', name)
    flags = int(user.word("p how->flags").partition(" = ")[2])
    assert flags & 0o100000  # O_LARGEFILE
    assert user.word("p/x *how").endswith(f"= {{flags = {flags:#x}, mode = 0x0, resolve = 0x0}}")
    assert user.word("whatis *how") == "type = struct open_how"
    assert user.word("ptype struct open_how") == (
        "type = struct open_how {\n    __u64 flags;\n    __u64 mode;\n    __u64 resolve;\n}"
    )
    assert "/*      8      |       8 */    __u64 mode;" in user.word("ptype/o struct open_how")
    assert user.word("p sizeof(struct list_head)").endswith("= 16")
    assert user.word("p $lx_current().pid").endswith(f"= {user.view.thread}")
    assert user.word("p $lx_current().mm->owner == &$lx_current()").endswith("= 1")
    assert user.word("p do_sys_openat2").startswith("$")
    assert user.word("p $").startswith("$")
    assert user.word("p nothing_such") == 'No symbol "nothing_such" in current context.'
    assert user.word("p *(int *)8") == "Cannot access memory at address 0x8"
    assert user.word("p printk(1)") != ""


def test_registers_memory_and_instructions(user: BootUser) -> None:
    rip = next(one.value for one in user.view.registers if one.name == "rip")
    assert user.word("info registers rip") == f"{'rip':<15}{rip:#x} do_sys_openat2+0x0"
    lines = user.word("x/2i $pc").splitlines()
    assert lines[0].startswith(f"=> {rip:#x} <do_sys_openat2>:\t")
    assert user.word("info symbol $pc") == "do_sys_openat2+0x0"
    word = user.word("x/gx $sp")
    assert re.fullmatch(r"0x[0-9a-f]+:\t0x[0-9a-f]{16}", word)
    user.do(cmd.ReadWords(int(word.partition(":")[0], 16), 2))
    (read,) = user.of(ev.WordsRead)[-1:]
    assert read.words[0].value == int(word.partition("\t")[2], 16)
    assert read.words[0].hops[0].place.startswith("__x64_sys_openat+")
    groups = {one.name: one.group for one in user.view.registers}
    assert (groups["cr3"], groups["rax"], groups["eflags"]) == ("system", "general", "flags")
    assert "cr0" in groups


def test_the_call_stack_and_those_of_tasks_that_wait(user: BootUser) -> None:
    lines = user.word("bt").splitlines()
    functions = [line.split(" in ")[1].split("+")[0] for line in lines[:-1]]
    assert functions[:2] == ["do_sys_openat2", "__x64_sys_openat"]
    assert functions[-1] == "entry_SYSCALL_64_after_hwframe"
    assert lines[-1].startswith("(end: entered from a program")
    kthreadd = next(task for task in user.view.listed if task.comm == "kthreadd")
    assert (kthreadd.tid, kthreadd.state) == (2, "S")
    assert kthreadd.location.startswith("kthreadd+")
    assert "as it waits" in user.do(cmd.ChooseThread(2))
    waiting = [frame.function for frame in user.view.frames]
    assert waiting[0] in ("__schedule", "__switch_to_asm")
    assert waiting[-3:-1] == ["kthreadd", "ret_from_fork"]
    assert user.view.thread == 2
    user.do(cmd.ChooseThread(0))
    assert user.view.frames[0].function == "do_sys_openat2"
    assert "no task 4242" in user.do(cmd.ChooseThread(4242))


def test_words_that_are_wrong(user: BootUser) -> None:
    assert user.word("frobnicate").startswith('Undefined command: "frobnicate"')
    assert user.word("re").startswith('Ambiguous command "re"')
    assert user.word("b no_such_place") == "the kernel has no symbol no_such_place"
    assert user.word("b a b c").startswith("a b c: no place")
    assert user.word("si no_such") == 'No symbol "no_such" in current context.'
    assert user.word("rsi 0").startswith("0: a number from 1 to ")
    for word in ("finish", "reverse-finish", "lx-ps", "info hit"):
        assert user.word(f"{word} 3") == f'The "{word}" command does not take any arguments.'
    assert user.word("bt nothing_such") == 'No symbol "nothing_such" in current context.'
    assert user.word("info breakpoints 77") == (
        "No breakpoint, probe or watchpoint matching '77'."
    )
    assert user.word("ignore 1").startswith("ignore NUMBER COUNT")
    assert user.word("ignore 77 1") == "there is no probe 77"
    assert user.word("condition x").startswith("condition NUMBER")
    assert user.word("info nothing").startswith("info nothing: there are breakpoints")
    assert user.word("catch fire") == "catch fire: there are oops, panic, warn"
    assert user.word("delete 77") == "there is no probe 77"
    assert user.word("set pagination off").startswith("set var EXPRESSION")
    assert "no function is called" in user.word("p do_sys_openat2(1, 2, 3)")


def test_help(user: BootUser) -> None:
    assert user.word("help watch") == "watch -- Stop where a value in memory is changed."
    assert len(user.word("help").splitlines()) > 25
    assert user.word("help frob").startswith('Undefined command: "frob"')


def test_completion(user: BootUser) -> None:
    def completed(line: str) -> list[str]:
        user.do(cmd.CompleteLine(line))
        found: ev.LineCompleted = user.of(ev.LineCompleted)[-1]
        return list(found.lines)

    assert completed("reverse-c") == ["reverse-continue"]
    assert (
        completed("b do_sys_openat")[:2]
        == ["b do_sys_openat2", "b do_sys_openat2"][:1]
        + [line for line in completed("b do_sys_openat") if line != "b do_sys_openat2"][:1]
    )
    assert "p *init_task" in completed("p *init_tas")
    assert completed("info th") == ["info threads"]
    assert completed("nothing ") == []


def test_what_programs_have_is_refused_with_a_way_out(user: BootUser) -> None:
    for command, text in (
        (cmd.CallFunction("f()"), "without --boot"),
        (cmd.LoadHandlers("x.py"), ":bpftrace runs scripts"),
        (cmd.Signal(2), "7 types"),
        (cmd.StartBranch(), "one history"),
        (cmd.Undo(), "nothing to undo"),
    ):
        assert text in user.do(command)
    assert user.do(cmd.StepBack()) != ""


def test_stops_are_passed_by(user: BootUser) -> None:
    """As gdb: `continue 3` passes two stops of the breakpoint at hand, `ignore` those of any."""

    def hits() -> int:
        return user.view.probes[0].hits

    first = hits()
    assert user.word("c 3").startswith("breakpoint 1 at do_sys_openat2")
    assert hits() == first + 3
    assert user.word("ignore 1 2") == "Will ignore next 2 crossings of breakpoint 1."
    assert user.word("info breakpoints 1").splitlines()[-1] == "\tignore next 2 hits"
    user.do(cmd.Continue())
    assert hits() == first + 6
    assert user.word("ignore 1 0") == "Will stop next time breakpoint 1 is reached."
    assert user.word("condition 1 how->flags == 1") == ""
    assert user.word("info breakpoints").splitlines()[-1] == "\tif how->flags == 1"
    assert user.word("condition 1") == "Breakpoint 1 now unconditional."
    assert user.word("condition 1 $lx_current().pid > 1") == ""
    user.do(cmd.Continue())
    assert user.word("p $lx_current().pid > 1").endswith("= 1")
    at = user.view.pc
    user.word("si 2")
    twice = user.view.pc
    assert user.word("info registers rip").startswith(f"{'rip':<15}{twice:#x}")
    assert twice != at


def test_the_tasks_are_those_that_the_guest_lists(user: BootUser) -> None:
    """The kernel's own /proc says the same of all that sleep."""
    user.do(cmd.Delete(tuple(probe.row.id for probe in user.view.probes)))
    user.word("b __do_sys_reboot")
    user.do(cmd.Continue())
    text = user.output.partition("PREEMPT_DYNAMIC")[2].partition("end of tasks")[0]
    found = re.findall(r"(?m)^(\d+) \((.*)\) (\w) (\d+)$", text)
    assert len(found) > 30
    listed = {task.tid: task for task in user.view.listed}
    sleeping = [each for each in found if each[2] in "SI" and int(each[0]) in listed]
    assert len(sleeping) > 30
    for pid, comm, state, parent in sleeping:
        task = listed[int(pid)]
        assert task.ppid == int(parent)
        assert comm.startswith(task.comm)  # workers have their work behind it there
        assert task.state in (state, "R"), task
