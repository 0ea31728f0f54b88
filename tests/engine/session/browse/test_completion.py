"""What fits at the cursor of a definition: every offer makes a line that is accepted so far."""

import random

import archkit
import pytest
from archkit import FIRST_COMPILED
from kernelimages import AMD64_61, image_path
from sessionkit import SAMPLES

from engine.arch.plan import Mode
from engine.session import GuestConfig
from engine.session.browse.browser import Browser


def sample(arch: str, name: str = "structs", mode: Mode = Mode.STRICT) -> Browser:
    return Browser(GuestConfig(str(SAMPLES / arch / name)), mode)


def offered(found: Browser, line: str, *groups: str) -> tuple[str, tuple[str, ...]]:
    """What is replaced, and by what."""
    completion = found.complete_definition(line, len(line), groups)
    assert 0 <= completion.start <= len(line)
    return line[completion.start :], completion.words


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_the_parts_of_a_definition(arch: str) -> None:
    found = sample(arch, "recursion")
    register = archkit.argument(arch)
    assert offered(found, "") == ("", ("p:", "r:", "e:"))
    assert offered(found, "!r") == ("r", ("r:",))
    assert offered(found, "p:", "mine") == ("", ("mine/", "kprobes/", "uprobes/"))
    assert offered(found, "p:u") == ("u", ("uprobes/",))
    assert offered(found, "p:mine/x") == ("p:mine/x", ())
    assert offered(found, "p:a/b acker")[1][0] == "ackermann"
    assert offered(found, "p:a/b ackermann%r") == ("%r", ("%return",))
    typed, words = offered(found, f"p ackermann m={register[:2]}")
    assert typed == register[:2]
    assert register in words
    assert offered(found, "p ackermann m=+8(%")[0] == "%"
    assert offered(found, f"p ackermann m={register}:str") == ("str", ("string",))
    assert "s32" in offered(found, f"p ackermann m={register}:s")[1]
    assert "symbol" in offered(found, f"p ackermann m={register}:s")[1]
    assert "symbol" not in offered(found, f"p /a/b:8 m={register}:s")[1]
    assert offered(found, "p ackermann $c") == ("$c", ("$comm",))
    assert "$retval" not in offered(found, "p ackermann $")[1]
    assert offered(found, "r ackermann $ret") == ("$ret", ("$retval",))
    assert offered(found, "p ackermann%return $d") == ("$d", ("$duration",))
    assert offered(sample(arch, "recursion", Mode.KERNEL), "r ackermann $d") == ("$d", ())
    assert "@ackermann" in offered(found, "p main @acker")[1]
    assert offered(found, "p main +0(%x)")[1] == ()
    path = str(SAMPLES / arch / "recursion")
    assert offered(found, f"p {path[:-3]}") == (path[:-3], (f"{path}:",))
    assert offered(found, f"p {path}:acker") == (f"{path}:acker", (f"{path}:ackermann",))
    assert offered(found, "p /no/file:acker")[1] == ()
    assert "symbol" in offered(found, f"p {path}:ackermann m={register}:s")[1]
    assert offered(sample(arch, "recursion", Mode.KERNEL), f"p {path}:acker")[1] == ()


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_what_debug_information_names(arch: str) -> None:
    found = sample(arch, "structs")
    functions = [match.name for match in found.complete("", 200) if match.size]
    named = 0
    for name in functions:
        rows = found.verdicts.lookup.scope_at(found.verdicts.places.resolve(name)[0]).listing()
        typed, words = offered(found, f"p {name} v=")
        assert typed == ""
        assert words == tuple(dict.fromkeys(row[0] for row in rows))
        named += bool(words)
    assert named


def test_any_line_at_any_column() -> None:
    found = sample("x86_64", "structs")
    draw = random.Random(3)
    pieces = [*"pr!-:/%$@+()=", "p:", "r9:", "main", "%di", "%return", ":u8", "$arg1", "v="]
    for _ in range(600):
        line = "".join(draw.choice([*pieces, " ", " "]) for _ in range(draw.randrange(12)))
        column = draw.randrange(len(line) + 1)
        completion = found.complete_definition(line, column)
        assert 0 <= completion.start <= column
        rest = line[completion.start : column]
        for word in completion.words:
            assert word.startswith(rest) or word.rpartition(":")[2].startswith(rest)


def test_arguments_of_a_function_that_nothing_is_known_of_are_numbers() -> None:
    """A kernel's assembly, of which its debug information does not tell."""
    found = Browser(GuestConfig(str(image_path(AMD64_61))), Mode.STRICT)
    assert offered(found, "p startup_64 $ar")[1][:3] == ("$arg1", "$arg2", "$arg3")
    assert offered(found, "r startup_64 a=$r")[1] == ("$retval",)
    assert "$arg*" in offered(found, "p vfs_read $ar")[1]


def test_event_probes_have_events_fields_and_types() -> None:
    found = sample("x86_64", "recursion")

    def words(line: str) -> tuple[str, ...]:
        return offered(found, line)[1]

    assert words("e:x sched.sched_sw") == ("sched.sched_switch",)
    assert words("e:x syscalls/sys_enter_close_") == ("syscalls.sys_enter_close_range",)
    line = "e:x syscalls.sys_enter_openat "
    assert words(line)[:4] == ("$__syscall_nr", "$dfd", "$filename", "$flags")
    assert words(f"{line}a=$fi") == ("$filename",)
    assert words(f"{line}a=+0($fi") == ("$filename",)
    assert "string" in words(f"{line}a=$filename:")
    assert words("e:x nosuch.event $") == ("$comm",)


def test_lines_without_a_place_are_judged_as_they_are_typed() -> None:
    found = sample("x86_64", "recursion")
    assert found.check("e:x syscalls.sys_enter_close a=$fd").ok
    assert found.check("s:made u64 a").text == "s:synthetic/made u64 a: an event without a place"
    bad = found.check("e:x syscalls.sys_enter_close a=$no")
    assert (bad.ok, bad.column) == (False, 31)
    assert bad.text.startswith("syscalls/sys_enter_close has $__syscall_nr, $fd")
