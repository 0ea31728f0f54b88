"""Indirect functions of this machine's libraries mean the code that its own loader chooses."""

import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build

from engine.errors import CommandError
from engine.image import ElfImage, Symbol
from engine.session.live import ifunc_choice
from engine.session.live.ifunc_choice import MachineChoice, ResolverProcess
from engine.session.live.machine_files import MachineTree, machine_program
from engine.session.program.implementations import Implementations
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.places import PlaceError
from engine.session.protocol.config import GuestConfig

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="asks an x86-64 machine")

LIBRARY = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loud(void) { write(1, "7 \n", 3); write(2, "!", 1); }
int one(void) { return 1; }
int two(void) { return 2; }
static void *by_processor(void) { return __builtin_cpu_supports("sse2") ? two : one; }
static void *crashes(void) { __builtin_trap(); }
static void *hangs(void) { for (;;) __asm__ volatile(""); }
static void *none(void) { return 0; }
static void *rights(void) { return geteuid() && setuid(0) ? two : one; }
int number(void) __attribute__((ifunc("by_processor")));
int crash(void) __attribute__((ifunc("crashes")));
int hang(void) __attribute__((ifunc("hangs")));
int nothing(void) __attribute__((ifunc("none")));
int root(void) __attribute__((ifunc("rights")));
"""

USER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <math.h>
int number(void);
static void tell(const char *name) {
    Dl_info info;
    void *code = dlsym(RTLD_DEFAULT, name);
    dladdr(code, &info);
    printf("%s %lx\n", name, (unsigned long)((char *)code - (char *)info.dli_fbase));
}
int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) tell(argv[n]);
    return number() == 3 || (argc > 100 && floor(argc) > 3);
}
"""
ASKED = ("strlen", "memcpy", "strchr", "memset", "strcmp", "number")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    library = build(tmp_path, "libnumber.so", LIBRARY, "-O1", "-shared", "-fPIC", "-w")
    user = build(tmp_path, "user", USER, "-O1", str(library), f"-Wl,-rpath,{tmp_path}", "-lm")
    opened = machine_program(GuestConfig(str(user)))
    return opened.program(MachineTree("", opened.image.damage))


@pytest.fixture
def chosen(program: Program) -> Iterator[MachineChoice]:
    made = MachineChoice(program, str)
    yield made
    made.close()


def function(program: Program, name: str) -> tuple[ProgramFile, Symbol]:
    """The file and the symbol of an indirect function."""
    for file in program.files:
        found = [symbol for symbol in file.symbols.find_all(name) if symbol.kind == "ifunc"]
        if found:
            return file, found[0]
    raise AssertionError(name)


def test_the_code_is_what_a_program_of_this_machine_calls(
    program: Program, chosen: MachineChoice
) -> None:
    answers: list[str] = []
    words = [program.main.path, *ASKED]
    native = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    expected = dict(line.split() for line in native.removeprefix("7 \n").splitlines())
    known = Implementations(program, chosen, answers.append)
    for name in ASKED:
        owner, link = known(*function(program, name))
        assert (name, f"{link:x}") == (name, expected[name])
        assert owner.path.rpartition("/")[2] == (
            "libnumber.so" if name == "number" else "libc.so.6"
        )
    assert len(answers) == len(ASKED)
    assert answers[-1] == (
        "number is an indirect function: its implementation on this machine is two of libnumber.so"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("crash", "the process that asks it ended with signal 4"),
        ("hang", "no answer within 1 s"),
        ("nothing", "it returns 0x0"),
    ],
)
def test_a_resolver_that_does_not_tell_is_told(
    program: Program,
    chosen: MachineChoice,
    name: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, symbol = function(program, name)
    chosen.ask(*function(program, "number"))  # it is loaded
    monkeypatch.setattr(ifunc_choice, "_PATIENCE", 1.0)
    known = Implementations(program, chosen, print)
    with pytest.raises(PlaceError) as caught:
        known(file, symbol)
    assert str(caught.value) == (
        f"{name} is an indirect function: its resolver does not tell its code: {why}"
    )
    assert chosen.ask(*function(program, "number"))[0] is file  # a new process


def test_a_library_has_none_of_our_rights(program: Program, chosen: MachineChoice) -> None:
    owner, link = chosen.ask(*function(program, "root"))
    symbol = owner.symbols.at(link)
    assert symbol is not None
    assert symbol.name == "two"


def test_the_choice_of_the_program_itself_is_not_guessed(tmp_path: Path) -> None:
    user = build(tmp_path, "user", LIBRARY + "int main(void) { return number(); }", "-O1", "-w")
    opened = machine_program(GuestConfig(str(user)))
    program = opened.program(MachineTree("", opened.image.damage))
    with pytest.raises(CommandError, match="not known before the program runs; name the code"):
        MachineChoice(program, str).ask(*function(program, "number"))


def test_a_file_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    library = build(
        tmp_path, "liblost.so", "int lost(void); int f(void) { return lost(); }",
        *("-shared", "-fPIC", "-Wl,-z,now"),
    )  # fmt: skip
    text = tmp_path / "text"
    text.write_text("no library")
    for path, why in ((text, "file too short"), (library, "undefined symbol: lost")):
        with pytest.raises(CommandError) as caught:
            ResolverProcess(str(path), ElfImage.open(library))
        assert str(caught.value) == f"{path}: {why}"
    with pytest.raises(CommandError, match="No such file"):
        ResolverProcess(str(tmp_path / "none"), ElfImage.open(library))
