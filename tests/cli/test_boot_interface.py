"""`kprobe-tui --boot KERNEL`: the interface over a booted kernel, and gdb's words without."""

from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelimages import AMD64_61, image_path

_LINES = "break start_kernel\ncontinue\n# nothing\nfrobnicate\ninfo symbol $pc\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--boot", "missing"), "missing"),
        (("--boot", "/bin/true"), "no kernel image"),
        (("--boot",), "Missing argument 'KERNEL'"),
        (("--boot", "-ex", "c", "KERNEL"), "go with --batch"),
        (("--boot", "--batch", "--memory", "1M", "KERNEL"), "--memory: a machine has"),
        (("--boot", "--batch", "--initrd", "none", "KERNEL"), "none"),
        (("--boot", "--batch", "-e", "p:x/y no_such", "KERNEL"), "no_such"),
        (("--boot", "--batch", "--frob", "KERNEL"), "--frob"),
        (("--boot", "--batch", "RECORDED"), "not a recorded boot"),
        (("--batch", "RECORDED"), "not a recorded boot"),
        (("RECORDED",), "not a recorded boot"),
        (("--boot", "--batch", "--initrd", "x", "RECORDED"), "goes as it went then"),
    ],
)
def test_bad_usage(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """Exit code 2, without a traceback."""
    recorded = tmp_path / "boot.rec"
    recorded.write_bytes(b"KPTBOOTED\0")
    names = {"RECORDED": str(recorded)}
    if "KERNEL" in words:
        names["KERNEL"] = str(image_path(AMD64_61))
    done = run(*(names.get(word, word) for word in words), cwd=tmp_path)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_options_may_follow_the_kernel(tmp_path: Path) -> None:
    """A kernel has no arguments of its own."""
    words = ("--boot", str(image_path(AMD64_61)), "-ex", "frobnicate", "--batch")
    done = run(*words, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith('Undefined command: "frobnicate"')


@needs_host_code
@pytest.mark.slow
def test_words_of_a_file_and_of_the_command_line(tmp_path: Path) -> None:
    """Results go to stdout with the console, errors to stderr; the last one decides."""
    (tmp_path / "words").write_text(_LINES)
    made = str(initrd(tmp_path, "#!/bin/sh\necho hello\npoweroff -f\n"))
    words = ("--boot", "--batch", "--append", "quiet", "--initrd", made, "-e", "p:a/open vfs_open")
    more = ("-x", "words", "-ex", "delete", "-ex", "c", "-ex", "info breakpoints", "-ex", "c")
    done = run(*words, *more, str(image_path(AMD64_61)), cwd=tmp_path)
    assert done.code == 1
    out = done.out.replace("\r", "").splitlines()
    assert out[0].startswith("Breakpoint 2 at 0xffffffff8")
    assert out[1:3] == ["breakpoint 2 at start_kernel+0x0", "start_kernel+0x0"]
    assert "hello" in out
    assert out[-2:] == ["the machine is switched off", "No breakpoints."]
    errors = done.err.splitlines()
    assert errors[0].startswith('Undefined command: "frobnicate"')
    assert errors[-1].startswith("the boot is over")


@needs_host_code
@pytest.mark.slow
def test_a_boot_that_never_ends_is_cut_short(tmp_path: Path) -> None:
    made = str(initrd(tmp_path, "#!/bin/sh\necho waits\nread line\n"))
    words = ("--boot", "--batch", "--timeout", "20", "--append", "quiet", "--initrd", made)
    done = run(*words, "-ex", "continue", str(image_path(AMD64_61)), cwd=tmp_path)
    assert done.code == 124
    assert "waits" in done.out
    assert "time" in done.err
