"""Test programs and libraries of a checkout of bpftrace, compiled as its CMakeLists.txt says."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from compiled import tool

_FLAGS: Final = ("-g", "-O0", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-w")
_WITHOUT_FRAMES: Final = ("-g", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
_OF_A_LIBRARY: Final = "usdt_lib"
"""The program that needs the library of markers."""
_SPLIT: Final = "uprobe_test"
"""The program whose debug information is put into files of its own."""


def built(checkout: Path, folder: Path) -> Path:
    """A folder like bpftrace's `build/tests`: scripts and outputs, programs and libraries.

    Args:
        checkout: the checkout, in which nothing is written.
        folder: where the folder is made.
    """
    source, made = checkout / "tests", folder / "tests"
    shutil.copytree(source / "runtime", made / "runtime")
    shutil.copytree(source / "data", made / "data")
    for name in ("testprogs", "testlibs"):
        (made / name).mkdir()
    for path in sorted((source / "testlibs").glob("*.c")):
        _compile(path, made / "testlibs" / f"lib{path.stem}.so", "-g", "-O0", "-shared", "-fPIC")
    for path in sorted((source / "testprogs").glob("*.c*")):
        if path.suffix in (".c", ".cpp"):
            _program(path, made)
    _others(source / "testprogs", made / "testprogs")
    return made


def _program(path: Path, made: Path) -> None:
    flags = _WITHOUT_FRAMES if path.stem == "uprobe_nofp" else _FLAGS
    libraries: tuple[str, ...] = ()
    if path.stem == _OF_A_LIBRARY:
        libraries = ("-L", str(made / "testlibs"), "-lusdt_tp", "-fPIC")
        libraries += (f"-Wl,-rpath,{made / 'testlibs'}",)
    for suffix, options in (("", ("-no-pie",)), ("-pie", ("-fpie", "-pie"))):
        target = made / "testprogs" / (path.stem + suffix)
        _compile(path, target, *flags, *options, "-pthread", after=libraries)


def _compile(path: Path, target: Path, *flags: str, after: tuple[str, ...] = ()) -> None:
    headers = [str(path.parents[1] / name) for name in ("include", "testlibs")]
    options = [word for name in headers for word in ("-I", name)]
    compiler = tool("g++" if path.suffix == ".cpp" else "gcc")
    command = [compiler, *flags, *options, "-o", str(target), str(path), *after]
    subprocess.run(command, check=True)
    if target.suffix == ".so":
        target.chmod(0o644)  # libraries that are not executable can be probed as well


def _others(source: Path, made: Path) -> None:
    """Files of programs in other forms: flat, zipped, stripped, with split debug information."""
    _run("gcc", "-c", source / "false.c", "-o", made / "false.o")
    flat = ("-S", "--only-section=.text", "--keep-symbol=main", "-O", "binary")
    _run("objcopy", *flat, made / "false.o", made / "false.bin")
    (made / "false.o").unlink()
    _run("zip", "-q", "-0", "-j", made / "archive.zip", made / "true")
    outside = made / "external_debug"
    for folder in (outside, outside / "dwo", outside / "dwp", made / ".debug"):
        folder.mkdir()
    _stripped(made / _SPLIT, outside)
    separate = _stripped(made / "uprobe_separate_debug", made / ".debug")
    link = f"--add-gnu-debuglink={separate}"
    _run("objcopy", link, made / "uprobe_separate_debug-stripped")
    text = source / f"{_SPLIT}.c"
    for name in ("dwo", "dwp"):
        target = outside / name / f"{_SPLIT}-split"
        headers = ("-I", source.parent / "include")
        _run("gcc", "-w", "-g", "-O0", "-gsplit-dwarf", *headers, text, "-o", target)
    if shutil.which("go"):
        _run("go", "build", "-o", made / "hello_go", source / "hello_go.go")
    if shutil.which("rustc"):
        mangled = ("-C", "symbol_mangling_version=v0")
        _run("rustc", *mangled, "-o", made / "hello_rust", source / "hello_rust.rs")
    packed = outside / "dwp" / f"{_SPLIT}-split"
    if shutil.which("llvm-dwp"):
        _run("llvm-dwp", "-e", packed, "-o", f"{packed}.dwp")
        for path in (outside / "dwp").glob("*.dwo"):
            path.unlink()


def _stripped(program: Path, folder: Path) -> Path:
    apart = folder / f"{program.name}-stripped.debug"
    _run("objcopy", "--only-keep-debug", program, apart)
    _run("objcopy", "--strip-debug", program, f"{program}-stripped")
    return apart


def _run(name: str, *words: str | Path) -> None:
    subprocess.run([tool(name), *[os.fspath(word) for word in words]], check=True)
