"""Scripts and lists about files that the guest has not mapped when it begins."""

from pathlib import Path

import pytest
from compiled import build
from guestrun import Outcome, run

PLUGIN = "int addone(int x) { return x + 1; } int addtwo(int x) { return x + 2; }"
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    int (*call)(int) = library ? (int (*)(int))dlsym(library, "addone") : 0;
    if (!call) return 1;
    printf("%d %d\n", call(1), call(41));
    fflush(stdout);
    if (!fork()) { execv(argv[2], argv + 2); _exit(9); }
    wait(0);
    return 0;
}
"""
CHILD = r"""
#include <stdio.h>
__attribute__((noinline)) int kid(int x) { return x * 2; }
int main(int argc, char **argv) { printf("%d\n", kid(argc)); return 0; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("later")
    build(made, "libplug.so", PLUGIN, "-shared", "-fPIC", "-O1")
    build(made, "program", PROGRAM, "-O1")
    build(made, "child", CHILD, "-O1")
    (made / "libtext.so").write_text("no program")
    (made / "libplug.so.2").symlink_to("libplug.so")
    return made


def scripted(folder: Path, script: str, *options: str) -> Outcome:
    guest = ("./program", "./libplug.so", "./child", "a", "b")
    text = script.replace("HERE", str(folder))
    found = run("bpftrace", "-q", *options, "-e", text, "--", *guest, cwd=folder)
    return Outcome(found.code, found.out.replace(str(folder), "HERE"), found.err, found.rss)


@pytest.mark.parametrize(
    ("script", "maps"),
    [
        (
            "uprobe:HERE/lib*.so*:add* { @[probe] = count(); }",
            "@[uprobe:HERE/libplug.so:addone]: 2\n",  # once, though it has two names
        ),
        ("uprobe:./lib*:addone { @[arg0] = count(); }", "@[1]: 1\n@[41]: 1\n"),
        ("uretprobe:libplug:addone { @[retval] = count(); }", "@[2]: 1\n@[42]: 1\n"),
        ("uprobe:HERE/chi*:k* { @[func, comm, arg0] = count(); }", "@[kid, child, 3]: 1\n"),
    ],
)
def test_files_that_are_mapped_later_are_probed(folder: Path, script: str, maps: str) -> None:
    found = scripted(folder, script)
    assert (found.code, found.out) == (0, f"2 42\n6\n\n\n{maps}"), found.err


def test_a_recording_has_the_files_that_were_mapped(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s.bt").write_text(f"uprobe:{folder}/lib*:add* {{ @[arg0] = count(); }}")
    recording = str(tmp_path / "run")
    guest = ("./program", "./libplug.so", "./child")
    assert run("record", "-o", recording, *guest, cwd=folder).code == 0
    found = run("replay", "--bpftrace", "s.bt", recording, cwd=tmp_path)
    assert found.out == "2 42\n2\n\n\n@[1]: 1\n@[41]: 1\n", found.err


def listed(folder: Path, pattern: str) -> Outcome:
    return run("bpftrace", "-l", pattern.replace("HERE", str(folder)), "--", "./child", cwd=folder)


def test_files_on_disk_are_listed(folder: Path) -> None:
    for pattern, file in (
        ("uprobe:HERE/lib*.so:add*", f"{folder}/libplug.so"),
        ("u:./lib*:add*", "./libplug.so"),
        ("uprobe:HERE/lib*.so.2:add*", f"{folder}/libplug.so.2"),
    ):
        found = listed(folder, pattern)
        expected = f"uprobe:{file}:addone\nuprobe:{file}:addtwo\n"
        assert (found.code, found.out) == (0, expected), found.err
    assert listed(folder, "uprobe:libc:mallop*").out.endswith("libc.so.6:mallopt\n")
    assert listed(folder, "uprobe:lib*:mallop*").out.endswith("libc.so.6:mallopt\n")
    assert listed(folder, "uprobe:HERE/program:no*").out == ""


@pytest.mark.parametrize("target", ["/nowhere", "/nowhere/lib*", "HERE/libtext*", "libnosuch"])
def test_a_file_that_is_not_there_is_told_as_natively(folder: Path, target: str) -> None:
    target = target.replace("HERE", str(folder))
    text = f"uprobe target file '{target}' does not exist or is not executable"
    found = listed(folder, f"uprobe:{target}:x*")
    assert (found.code, found.out) == (2, "")
    assert text in found.err
    found = scripted(folder, f"uprobe:{target}:x {{ }}")
    assert (found.code, found.out) == (2, "")
    assert f"ERROR: {text}.\n" in found.err


def test_a_file_that_is_no_program_is_told(folder: Path) -> None:
    found = scripted(folder, "uprobe:HERE/libtext.so:x { }")
    assert found.code == 2
    assert "is a text file, not an ELF program" in found.err
