"""An architecture is its record: nothing else names one, and a record alone is enough."""

import ast
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace
from sysroot import CHECKOUT

from engine import arch as architectures
from engine.arch import ListedArch
from engine.cli.main import main

# -- names ----------------------------------------------------------------------------------

_NAMES = re.compile(
    r"x86|amd64|i386|aarch64|arm64|armv|(?-i:^ARM$)|ia_?64|itanium|riscv|rv64|mips|(?<![a-z])ppc|powerpc|s390"
    r"|loongarch|^EM_",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[a-zA-Z0-9_-]+")
_EXAMPLES = re.compile(r"samples/bin/\w+/|--arch \w+ ?")
"""The words of a command line that a help text shows."""

REASONS = {
    ("engine/arch/__init__.py", "*"): "the list of architectures: a line each",
    ("engine/session/tracing/hist_triggers.py", "x86-tsc"): "the kernel's own name of a clock",
    ("engine/cpu/cores.py", "ia64"): "a processor of our own, in the list of processors",
    ("engine/cpu/cores.py", "_ia64"): "makes it",
    ("engine/cpu/cores.py", "Ia64Cpu"): "is it",
    (
        "engine/session/headless/world.py",
        "ia64",
    ): "its e_flags tell programs of 64 bits from others",
    ("engine/arch/uprobe_faults.py", "*"): "the table of what Linux does wrong, and where",
    ("engine/cpu/native.py", "x86_64"): "the host: code for its processor is written there",
    ("engine/cpu/native.py", "AMD64"): "the same, as Windows calls it",
    (
        "engine/cpu/unicorn_blocks.py",
        "*",
    ): "code for Unicorn's targets, by Unicorn's names for them",
    ("engine/cpu/unicorn_blocks_code.py", "*"): "that code",
    ("engine/cpu/unicorn_lent.py", "x86_64"): "the host, whose instructions are lent",
    ("engine/cli/boot.py", "*"): "machines are of one architecture, and the help text says so",
    ("engine/cli/main.py", "x86-64"): "the same, in the list of commands",
    ("engine/cpu/unicorn_system.py", "*"): "the processor of such a machine",
    ("engine/cpu/unicorn_planted.py", "*"): "breakpoints of that processor",
    ("engine/cpu/unicorn_watches.py", "*"): "watched data of that processor",
    ("engine/machine/ramdisk.py", "*"): "says which programs such a machine runs",
    ("engine/session/headless/bootable.py", "*"): "says which kernels are booted",
    ("engine/session/headless/self_profile.py", "*"): "knows functions of the emulator by name",
    ("engine/session/inspect/frame_registers.py", "_IA64_EXTENDED"): "gdb's type of a register",
    (
        "engine/session/inspect/frame_registers.py",
        "builtin_type_ia64_ext",
    ): "the same, by its name",
    ("engine/image/dies.py", "AT_MIPS_LINKAGE_NAME"): "a name of the DWARF standard",
    ("engine/image/elf.py", "EM_"): "what is not in elf.h: EM_0x1234",
    ("engine/image/headers.py", "*"): "elf.h's names of machines, for messages about files",
    ("engine/image/ia64unwind.py", "*"): "a format of unwind tables: the IA-64 psABI's",
    ("engine/image/ia64unwindtext.py", "*"): "the same, as text",
    ("engine/image/index.py", "EM_ARM"): "symbols of files that no architecture here is for",
    ("engine/image/kernel/opening.py", "EM_"): "kernels that are for no architecture here",
    ("engine/image/kernel/packing.py", "*"): "the same: files that are told as what they are",
    ("engine/image/kernel/recognition.py", "*"): "the same",
    ("engine/image/kernel/tasklayout.py", "_X86_64"): "user-mode Linux, which is for no other",
    ("engine/image/symtab.py", "EM_ARM"): "the same: bit 0 says Thumb",
    ("engine/linux/fs/view.py", "x86-64-v"): "a folder of libraries on the host",
    ("engine/probes/placement_rules.py", "x86"): "the name of a rule of that table",
    ("engine/unwind/ia64.py", "*"): "the reader of that format of unwind tables",
    ("engine/unwind/unwinder.py", "ia64"): "that format, in the list of formats",
    ("engine/unwind/unwinder.py", "Ia64Tables"): "its reader",
}
"""(module, name) of those that may stand: "*" is all of a module."""

_CORES = ("engine/cpu/ia64/",)
"""Processors of our own: each is one architecture's."""


def _texts(node: ast.AST) -> Iterator[str]:
    """The names and texts that a node holds itself."""
    match node:
        case ast.Constant(value=str(text)):
            yield from _WORDS.findall(_EXAMPLES.sub("", text))
        case ast.Constant(value=bytes(data)):
            yield from _WORDS.findall(data.decode("latin-1"))
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
            yield from name.split(".")
        case ast.keyword(arg=str(name)):
            yield name


def _documentation(tree: ast.AST) -> set[ast.AST]:
    """Docstrings: texts that stand alone."""
    alone = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return {node for node in alone if isinstance(node, ast.Constant)}


def named(source: str) -> set[str]:
    """The architectures that code names; what it says in prose does not count."""
    tree = ast.parse(source)
    prose = _documentation(tree)
    return {
        text
        for node in ast.walk(tree)
        if node not in prose
        for text in _texts(node)
        if _NAMES.search(text)
    }


def _modules() -> Iterator[tuple[str, set[str]]]:
    for path in sorted([*CHECKOUT.glob("engine/**/*.py"), *CHECKOUT.glob("tui/**/*.py")]):
        module = path.relative_to(CHECKOUT).as_posix()
        inside = module.startswith("engine/arch/") and module.count("/") > 2
        if not inside and not module.startswith(_CORES):
            yield module, named(path.read_text("utf-8"))


@pytest.mark.slow
def test_nothing_but_its_own_modules_names_an_architecture() -> None:
    found = {(module, name) for module, names in _modules() for name in names}
    unknown = {key for key in found if key not in REASONS and (key[0], "*") not in REASONS}
    assert not unknown
    used = found | {(module, "*") for module, _ in found}
    assert {(module, name) for module, name in REASONS if (module, name) not in used} == set()


@pytest.mark.parametrize(
    "source",
    [
        "if arch.name == 'x86_64': pass",
        "KINDS = {b'aarch64': 1}",
        "from engine.arch.riscv64 import RISCV64",
        "import engine.arch.ia64.frames",
        "def open_x86(): pass",
        "headers.EM_X86_64",
        "f(ARM=1)",
    ],
)
def test_a_name_is_found(source: str) -> None:
    assert named(source)


def test_prose_is_no_name() -> None:
    source = '"""As on x86_64."""\ndef f():\n    """Of aarch64."""\n    probe.arm()  # arm64'
    assert not named(source)
    assert not named("shown = '--arch aarch64 samples/bin/x86_64/sort'")


# -- a record alone -------------------------------------------------------------------------

_MACHINE = 0xF00D


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    """An architecture that is nothing but a record in the list: a known one by another name."""
    record = replace(architectures.by_name("x86_64"), name="toy", elf_machine=_MACHINE)
    module = ModuleType("engine.arch.toy")
    module.TOY = record  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "engine.arch.toy", module)
    listed = (*architectures.ARCHES, ListedArch("toy", _MACHINE))
    monkeypatch.setattr(architectures, "ARCHES", listed)
    return "toy"


def _sample(folder: Path, name: str, machine: int) -> Path:
    data = bytearray((CHECKOUT / "samples" / "bin" / "x86_64" / name).read_bytes())
    struct.pack_into("<H", data, 18, machine)
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def _nowhere(*words: object) -> int:
    raise AssertionError("no interface is wanted")


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("recursion", "run recursion 5"),
        ("recursion", "trace -e p:e,$stack0 recursion 3"),
        ("recursion", "trace --technique breakpoint -f fib* -r fib* recursion 3"),
        ("jumps", "trace -f * jumps"),
        ("recursion", "graph --args --retval recursion 3"),
        ("recursion", "bt --at fibonacci --hit 5 recursion 5"),
        ("recursion", "bt --unwinder naive --at fibonacci --hit 5 recursion 5"),
        ("sort", "check --all sort"),
        ("sort", "check --summary --as uprobe --all sort"),
        ("recursion", "diff -f * -r * recursion 4"),
        ("recursion", "diff --every-insn fibonacci recursion 2"),
        ("structs", "disasm structs main"),
        ("crash", "run crash"),
        ("floats", "run floats"),
    ],
)
def test_a_record_is_all_that_an_architecture_needs(
    sample: str,
    words: str,
    toy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    known = architectures.by_name("x86_64").elf_machine
    said = []
    for machine in (known, _MACHINE):
        _sample(tmp_path, sample, machine)
        monkeypatch.chdir(tmp_path)
        code = main([f"./{word}" if word == sample else word for word in words.split()], _nowhere)
        said.append((code, *capfd.readouterr()))
    assert said[0] == said[1]
    assert said[0][1] or said[0][2]


def test_it_is_offered_and_its_strangers_are_not_opened(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"\x90\xc3")
    assert main(["disasm", "--raw", "--arch", "toy", str(plain)], _nowhere) in (0, 2)
    program = _sample(tmp_path, "recursion", _MACHINE + 1)
    capfd.readouterr()
    assert main(["run", str(program)], _nowhere) == 2
    assert "supported are x86_64" in capfd.readouterr().err
    assert "toy" in ", ".join(architectures.names())
