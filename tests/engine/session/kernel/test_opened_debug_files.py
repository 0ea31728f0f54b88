"""Names and lines that come with a kernel: a debug file, a System.map, by themselves found."""

import subprocess
from pathlib import Path

import pytest

from engine.errors import CommandError, ImageError
from engine.session.kernel.definition_answers import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice

MANY = "\n".join(f"int filler_{n}(int x) {{ return x + {n}; }}" for n in range(120))
SOURCE = f"""
asm(".globl _stext\\n_stext:");
const char linux_banner[] = "Linux version 6.1.5-made (x) (cc) #1 SMP Debian 6.1.5-1 (now)";
__attribute__((section("__ksymtab"), used)) static long exported[2] = {{1, 2}};
int total;
extern char _etext[];
char *end_of_text = _etext;
int first(void) {{ return total; }}
int adds(int count)
{{
    int sum = 0;
    for (int i = 0; i < count; i++) {{
        sum += i ^ count;
        total = sum;
    }}
    return sum;
}}
{MANY}
"""
LOOP = 1 + SOURCE[: SOURCE.index("total = sum")].count("\n")


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `vmlinux`, and without its names: `stripped`, `linked`."""
    folder = tmp_path_factory.mktemp("vmlinux")
    (folder / "made.c").write_text(SOURCE)
    flags = ("-g", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-mcmodel=kernel")
    link = ("-Wl,-Ttext=0xffffffff81000000", "-Wl,--build-id=sha1", "-Wl,-e,_stext")
    try:
        run("gcc", *flags, *link, "-fcf-protection=none", "-o", folder / "vmlinux",
            folder / "made.c")  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no gcc for x86-64: {error}")
    run("objcopy", "--strip-all", folder / "vmlinux", folder / "stripped")
    run("objcopy", f"--add-gnu-debuglink={folder / 'vmlinux'}", folder / "stripped",
        folder / "linked")  # fmt: skip
    names = [line for line in run("nm", "-n", folder / "vmlinux").splitlines() if line[0] != " "]
    (folder / "System.map").write_text("\n".join(names) + "\n")
    return folder


def rows(
    path: Path, line: str, debug_file: str | None = None, system_map: str | None = None
) -> list[tuple[str, int]]:
    choice = KernelChoice(debug_file=debug_file, system_map=system_map)
    opened = OpenedKernel.open(path, choice)
    found = defined_rows(opened, [line], sequence=False)
    return [(row.symbol, row.offset) for row in found if row.ok]


def address_of(folder: Path, line: int) -> int:
    """The place of a line in `adds`, as gdb has it: the first of its statements."""
    text = run("objdump", "--dwarf=decodedline", folder / "vmlinux")
    found = [row.split() for row in text.splitlines() if row.startswith("made.c ")]
    start = int(run("nm", folder / "vmlinux").split(" T adds")[0].splitlines()[-1], 16)
    places = [int(row[2], 16) - start for row in found if row[1] == str(line)]
    return min(places)


def test_a_stripped_image_has_the_names_of_what_is_given(made: Path) -> None:
    with pytest.raises(ImageError, match="no token table"):
        OpenedKernel.open(made / "stripped", KernelChoice())
    for choice in (
        KernelChoice(debug_file=str(made / "vmlinux")),
        KernelChoice(system_map=str(made / "System.map")),
    ):
        opened = OpenedKernel.open(made / "stripped", choice)
        (row,) = defined_rows(opened, ["p adds+0"], sequence=False)
        assert (row.ok, row.symbol, row.offset) == (True, "adds", 0)
        assert opened.image.version == (6, 1, 5)
        assert any("names are those of" in line for line in opened.image.elf.damage.found())


def test_lines_are_places(made: Path) -> None:
    wanted = [("adds", address_of(made, LOOP))]
    line = f"p:a/b made.c:{LOOP}"
    debug, names = str(made / "vmlinux"), str(made / "System.map")
    assert rows(made / "stripped", line, debug_file=debug) == wanted
    assert rows(made / "linked", line, system_map=names) == wanted  # by its .gnu_debuglink
    assert rows(made / "vmlinux", line, system_map=names) == wanted  # in the file itself
    with pytest.raises(CommandError, match=r"made\.c:9999: no code for line 9999"):
        rows(made / "linked", "p made.c:9999", system_map=names)
    with pytest.raises(CommandError, match="--debug-file FILE names it"):
        rows(made / "stripped", line, system_map=names)


def test_what_belongs_to_another_kernel_is_told(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    data = (made / "vmlinux").read_bytes()
    at = data.index(b"GNU\0") + 4
    other.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ImageError, match="that of another kernel"):
        rows(made / "stripped", "p adds", debug_file=str(other))
    (tmp_path / "stub").write_text("ffffffffffffffff B The real System.map is elsewhere\n")
    with pytest.raises(ImageError, match=r"no System\.map"):
        rows(made / "stripped", "p adds", system_map=str(tmp_path / "stub"))
    with pytest.raises(ImageError, match="No such file"):
        rows(made / "stripped", "p adds", system_map=str(tmp_path / "none"))
