"""The contract of `kprobe-tui disasm`: the same instructions as objdump's, lines, errors."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from guestrun import Outcome, run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
INSNS = str(CHECKOUT / "tests" / "data" / "uprobes" / "kf_insns")
SORT = str(SAMPLES / "x86_64" / "sort")
LINE = re.compile(
    r"0x([0-9a-f]+)(?: <(\S+)\+0x([0-9a-f]+)>)?: ((?:[0-9a-f]{2} )*[0-9a-f]{2}) {2,}(\S.*)"
)


def disasm(home: Path, *words: str) -> Outcome:
    return run("disasm", *words, cwd=home)


def parsed(done: Outcome) -> dict[int, str]:
    assert (done.code, done.err) == (0, "")
    found = {}
    for line in done.out.splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        found[int(match[1], 16)] = match[4].replace(" ", "")
    return found


def objdumps(tool: str, path: str) -> dict[int, str]:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    done = subprocess.run(
        [tool, "-d", "-z", "-w", path], capture_output=True, text=True, check=True
    )
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*(?:\t|$)", line)
        if match:
            code = match[2].replace(" ", "")
            if "aarch64" in tool:
                code = bytes.fromhex(code)[::-1].hex()
            found[int(match[1], 16)] = code
    return found


@pytest.mark.parametrize("path", [SORT, "/bin/ls"])
def test_the_same_instructions_as_objdump(tmp_path: Path, path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"no {path}")
    assert parsed(disasm(tmp_path, path)) == objdumps("objdump", path)


def test_the_same_instructions_as_objdump_on_aarch64(tmp_path: Path) -> None:
    path = str(SAMPLES / "aarch64" / "words")
    assert parsed(disasm(tmp_path, path)) == objdumps("aarch64-linux-gnu-objdump", path)


def test_a_function_by_any_of_its_places(tmp_path: Path) -> None:
    whole = disasm(tmp_path, SORT, "by_id").out
    lines = whole.splitlines()
    assert all("<by_id+" in line for line in lines)
    assert "<by_id+0x0>" in lines[0]
    inside = lines[1].partition(" ")[0]
    assert disasm(tmp_path, SORT, inside).out == whole
    assert disasm(tmp_path, SORT, "sort:by_id+1").out == whole


def test_plain_bytes(tmp_path: Path) -> None:
    (tmp_path / "code").write_bytes(bytes.fromhex("4889d8 06 c3 48b8"))
    done = disasm(tmp_path, "--raw", "--arch", "x86_64", "--base", "0x1000", "code")
    assert [line.split(": ") for line in done.out.splitlines()] == [
        ["0x1000", "48 89 d8                 mov rax, rbx"],
        ["0x1003", "06                       .byte 0x06"],
        ["0x1004", "c3                       ret"],
        ["0x1005", "48                       .byte 0x48"],
        ["0x1006", "b8                       .byte 0xb8"],
    ]
    done = disasm(tmp_path, "--raw", "--arch", "aarch64", "code")
    assert done.out.splitlines()[-1].endswith(".byte 0xc3, 0x48, 0xb8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((SORT, "nosuch"), "no symbol 'nosuch'"),
        ((SORT, "0x10"), "outside all segments"),
        (("/no/such",), "No such file or directory"),
        (("--raw", SORT), "--raw needs --arch"),
        (("--raw", "--arch", "x86_64", "/no/such"), "No such file or directory"),
        (("--raw", "--arch", "aarch64", "--base", "3", SORT), "4-aligned"),
        (("--arch", "x86_64", SORT), "go with --raw"),
        (("--raw", "--arch", "x86_64", "--base", "0x", SORT), "is not a number"),
    ],
)
def test_errors_are_one_message_and_2(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = disasm(tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
