"""Definitions of probes in programs of a booted system, judged by what a ramdisk brings."""

import stat
import subprocess
from pathlib import Path

import pytest
from compiled import build

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.arch.program import Source
from engine.errors import ProbeError
from engine.machine.cpioarchive import ArchiveEntry
from engine.machine.ramdisk import RamdiskRoot
from engine.session.booted.files import BootFiles
from engine.session.booted.program_places import ProgramDefinitions, is_of_program
from engine.trace.definition import Deletion

SOURCE = """
.globl _start, twice, held
.text
_start: mov $2, %edi
        call twice
        hlt
.type twice, @function
twice:  lea (%rdi, %rdi), %rax
        ret
.size twice, . - twice
.type held, @function
held:   int3
        ret
.size held, . - held
.data
        .quad 1
"""


C_SOURCE = """
struct point { int x, y; struct point *next; };
int total = 7;
static inline __attribute__((always_inline)) int half(int n) { return n / 2 + total; }
__attribute__((noinline)) int visit(struct point *p, double scale, int depth) {
    int sum = 0;
    for (; p; p = p->next) {
        sum += p->x * depth;
        total += sum;
    }
    return sum + (int)scale;
}
int main(int argc, char **argv) {
    struct point end = {3, 4, 0}, first = {1, 2, &end};
    return visit(&first, argc, half(argc)) + half(total);
}
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> BootFiles:
    """A system with a program that has debug information."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "visit.c").write_text(C_SOURCE)
    program = folder / "visit"
    words = ("gcc", "-g", "-O1", "-static-pie", "-o", str(program), "visit.c")
    subprocess.run(words, cwd=folder, check=True)
    return BootFiles(lambda: ramdisk(program))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> BootFiles:
    folder = tmp_path_factory.mktemp("program")
    program = build(folder, "small", SOURCE, "-nostdlib", "-static", "-Wl,-Ttext=0x401000")
    return BootFiles(lambda: ramdisk(program))


def ramdisk(program: Path) -> RamdiskRoot:
    root = RamdiskRoot()
    root.add(
        [
            ArchiveEntry(b"bin", stat.S_IFDIR | 0o755),
            ArchiveEntry(b"bin/small", stat.S_IFREG | 0o755, program.read_bytes()),
            ArchiveEntry(b"bin/script", stat.S_IFREG | 0o755, b"#!/bin/sh\n"),
            ArchiveEntry(b"link", stat.S_IFLNK | 0o777, b"bin/small"),
        ]
    )
    return root


def definitions(files: BootFiles, mode: Mode = Mode.STRICT) -> ProgramDefinitions:
    arch = by_name("x86_64")
    assert arch is not None
    return ProgramDefinitions(arch, files, mode)


def offset_of(files: BootFiles, name: str) -> int:
    file = files.file("/bin/small")
    assert file is not None
    symbol = file.symbols.find(name)
    assert symbol is not None
    offset = file.image.file_offset(symbol.address)
    assert offset is not None
    return offset


def test_lines_are_listed_as_uprobe_events_lists_them(files: BootFiles) -> None:
    made = definitions(files)
    at = offset_of(files, "twice")
    made.take(f"p:u/a /bin/small:{at:#x} n=%di:s32 text=+0(%si):string")
    made.take("r /link:twice%return ret=$retval")
    made.take("p:u/later /opt/later:0x10")
    assert [one.listing() for one in made.defined] == [
        f"p:u/a /bin/small:{at:#018x} n=%di:s32 text=+0(%si):string",
        f"r:uprobes/p_link_{at:#x} /link:{at:#018x} ret=$retval",
        "p:u/later /opt/later:0x0000000000000010",
    ]
    told = [line for report in made.remarks() for line in report.lines]
    assert told == ["/opt/later: no initial ramdisk has it: its probes wait for it"]
    assert made.delete(Deletion("u", "a"))
    assert not made.delete(Deletion("u", "a"))
    assert [one.event for one in made.defined] == [f"p_link_{at:#x}", "later"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("p:u/x /bin:0x10", "Not a regular file"),
        ("p:u/x /bin/small:0x10(", "Reference counter brace is not closed"),
        ("p:u/x /bin/small:0x1000(0x2000)", "a counter of users is a word of the program's"),
        ("p:u/x /bin/small:zero", "no symbol"),
        ("p:u/x /bin/small:0xffffff", "the file ends at offset"),
        ("p:u/x /bin/small:0x8", "is in no segment that is executed"),
        ("p:u/x /bin/small:twice+1", "twice+0x1 is in the middle of an instruction (EILSEQ)"),
        ("p:u/x /bin/small:held", "Failed to register probe event"),
        ("p:u/x /bin/small:none", "no symbol 'none' in /bin/small"),
        ("p:u/x /bin/script:0x0", "is a script for /bin/sh"),
        ("p:u/x /bin/other:main", "no initial ramdisk has /bin/other"),
        ("p:u/x /bin/small:twice x=@none", "Symbol is not available with uprobe"),
        ("p:u/x /bin/small:twice x=$retval", "$retval is not available on probe"),
        ("p:u/y /bin/other:0x10 n=%di:u8", "Argument type or name is different"),
        ("p:u/y /bin/other:0x10 n=%di", "There is already the exact same probe event"),
    ],
)
def test_lines_are_refused_with_the_kernels_words(files: BootFiles, line: str, text: str) -> None:
    made = definitions(files)
    made.take("p:u/y /bin/other:0x10 n=%di")
    with pytest.raises(ProbeError) as caught:
        made.take(line)
    if text != "no symbol":
        assert text in str(caught.value)
    assert len(made.defined) == 1


def test_kernel_mode_takes_what_linux_takes(files: BootFiles) -> None:
    made = definitions(files, Mode.KERNEL)
    at = offset_of(files, "twice")
    for number, place in enumerate((f"/bin/small:{at + 1:#x}", "/bin/small:0x8", "/bin/script:0")):
        made.take(f"p:u/e{number} {place}")
    with pytest.raises(ProbeError, match="PATH:OFFSET with an offset"):
        made.take("p:u/x /bin/small:twice")
    assert len(made.defined) == 3


@pytest.mark.parametrize(
    ("line", "yes"),
    [
        ("p /bin/ls:0x10", True),
        ("r:u/x /bin/ls:0x10 $retval", True),
        ("!p /bin/ls:0x10", True),
        ("p vfs_read x=+0(%di):string", False),
        ("-:u/x /bin/ls:0x10", False),
        ("p:u/x", False),
        ("", False),
    ],
)
def test_a_path_makes_a_definition_one_of_a_program(line: str, yes: bool) -> None:
    assert is_of_program(line) is yes


def test_short_names_are_found_where_systems_have_them(files: BootFiles) -> None:
    assert files.named("small", "x86_64") == "/bin/small"
    assert files.named("nothing", "x86_64") is None
    assert files.real_path("/link") == b"/bin/small"


def test_variables_of_a_program_are_named(described: BootFiles) -> None:
    made = definitions(described)
    made.take("p:u/a /bin/small:visit p->next->x deep=depth scale total $arg1 own=@+0x10")
    made.take("r:u/b /bin/small:visit $retval n=depth")
    made.take("p:u/c /bin/small:visit $arg*")
    names = [[arg.name for arg in one.args] for one in made.defined]
    assert names[0] == ["arg1", "deep", "scale", "total", "arg5", "own"]
    assert names[2] == ["p", "scale", "depth"]
    sources = [arg.base.source for arg in made.defined[0].args]
    assert sources[1:4] == [Source.REGISTER, Source.VECTOR, Source.IMAGE]
    assert made.defined[0].args[4].base == made.defined[0].args[0].base


def test_commands_of_perf_probe_stand_for_lines(described: BootFiles) -> None:
    made = definitions(described)
    line = "perf: -x /bin/small visit:4 sum depth"
    assert is_of_program(line)
    assert not is_of_program("perf: vfs_read")
    (one,) = made.take(line)
    assert one.event == "visit_L4"
    assert [arg.name for arg in one.args] == ["sum", "depth"]
    assert made.take("perf: -x small visit%return $retval")[0].is_return


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("p:u/x /bin/small:visit nothing", "This variable is not found at this probe point"),
        (
            "p:u/x /bin/small:half",
            "the function is inlined at 2 places: name one of /bin/small:0x",
        ),
        ("p:u/x /bin/small:0x10 $arg1", "can be used only on function entry"),
        ("p:u/x /bin/small:visite", "similar: visit"),
        ("perf: -x /bin/none visit", "no initial ramdisk has /bin/none"),
        ("perf: -x /bin/small", "-x FILE is followed by a definition"),
        ("perf: -x /bin/script visit", "is a script for /bin/sh"),
        ("perf: -x /bin/small visit:400", "visit"),
    ],
)
def test_names_that_a_program_does_not_have(described: BootFiles, line: str, text: str) -> None:
    made = definitions(described)
    with pytest.raises(ProbeError) as caught:
        made.take(line)
    assert text in str(caught.value)
    assert not made.defined


def test_kernel_mode_knows_no_variables_of_programs(described: BootFiles) -> None:
    file = described.file("/bin/small")
    assert file is not None
    symbol = file.symbols.find("visit")
    assert symbol is not None
    made = definitions(described, Mode.KERNEL)
    for argument in ("depth", "$arg1", "$arg*"):
        with pytest.raises(ProbeError):
            made.take(f"p:u/x /bin/small:{file.image.file_offset(symbol.address):#x} {argument}")
    assert not made.defined
