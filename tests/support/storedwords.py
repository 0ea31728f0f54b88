"""Sessions with gdb whose answers are stored: commands, programs, and what gdb said.

`python tests/support/storedwords.py SCRIPT PROGRAM` asks gdb again and stores its answers.
"""

import lzma
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = CHECKOUT / "tests" / "data" / "debugger" / "stored"
GDB: Final = ("gdb", "-q", "--batch", "-nx")
_SOURCES: Final = (".c", ".cpp", ".rs", ".words")
_PROMPT: Final = "(gdb) "
_HIGH: Final = 0x500000
"""Addresses from here on are the loader's choice."""


def commands(script: str) -> list[str]:
    """The commands of a script, a line each."""
    return (FOLDER / f"{script}.gdb").read_text().splitlines()


def unpacked(program: str, folder: Path) -> Path:
    """A stored program with the sources that it was made from, in a folder."""
    for source in FOLDER.iterdir():
        if source.suffix in _SOURCES:
            shutil.copy(source, folder)
    path = folder / program
    path.write_bytes(lzma.decompress((FOLDER / f"{program}.xz").read_bytes()))
    path.chmod(0o755)
    return path


def gdb_for(program: Path) -> tuple[str, ...] | None:
    """gdb as it is used for a program: Rust's with rustc's printers; None where those are not."""
    if not program.with_name(f"{program.name}.rs").exists():
        return GDB
    if shutil.which("rustc") is None:
        return None
    asked = ("rustc", "--print", "sysroot")
    root = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    folder = f"{root}/lib/rustlib/etc"
    if not Path(folder, "gdb_load_rust_pretty_printers.py").exists():
        return None
    path = f"python import sys; sys.path.insert(0, {folder!r})"
    load = f"source {folder}/gdb_load_rust_pretty_printers.py"
    return (*GDB, "-iex", path, "-iex", load)


def ask(tool: tuple[str, ...], script: str, program: Path) -> list[str]:
    """What a debugger says to each command of a script, masked."""
    words = ["-ex", "set confirm off", "-ex", "set width 0"]
    for number, command in enumerate(commands(script)):
        words += ["-ex", f"echo @@@{number}\\n", "-ex", command]
    done = subprocess.run(
        [*tool, *words, f"./{program.name}"],
        cwd=program.parent,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=500,
    )
    said = done.stdout.decode(errors="replace")
    return [masked(part, program.parent) for part in re.split(r"@@@\d+\n", said)[1:]]


def masked(text: str, folder: Path) -> str:
    """Without what no two runs share: addresses, ids of threads, widths of columns, folders."""
    text = re.sub(r"warning: \((?:Internal e|E)rror: pc 0x\w+ in .*\n", "", text)
    text = re.sub(r"^(warning: |.*libthread_db).*\n", "", text, flags=re.MULTILINE)
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(
        r"0x[0-9a-f]{7,16}",
        lambda match: "ADDRESS" if int(match[0], 16) > _HIGH else match[0],
        text,
    )
    # Before `run` gdb has a program that can stand anywhere at the addresses of its file.
    text = re.sub(r"((?:\bat|address) )0x[0-9a-f]{4,5}\b", r"\1ADDRESS", text)
    text = re.sub(r"\b0x0{11,12}[0-9a-f]{4,5}\b(?= in )", "ADDRESS", text)
    text = re.sub(r"Range 0x[0-9a-f]{4,5}-0x[0-9a-f]{4,5}", "Range ADDRESS-ADDRESS", text)
    text = re.sub(r"\bexpected=\d{4,}", "expected=N", text)  # a thread that is waited for
    text = re.sub(r"(process|LWP) \d+|Thread \d+\.\d+", "process N", text)
    text = re.sub(r"Thread (ADDRESS|0x[0-9a-f]+) \(\w+ N\)", "process N", text)
    text = re.sub(r"\$\d+ = ", "$N = ", text)
    if "Target Id" in text or re.search(r"^From ", text, re.MULTILINE):
        text = re.sub(" +", " ", text)
    return text


def stored(script: str, program: str) -> list[str]:
    """gdb's answers to a script for a program."""
    said = (FOLDER / f"{script}.{program}.answers").read_text()
    answers = [answer.partition("\n")[2] for answer in re.split(r"^\(gdb\) ", said, flags=re.M)]
    return answers[1:]


def store(script: str, program: str, answers: list[str]) -> None:
    """Keep gdb's answers to a script for a program."""
    rows = [
        f"{_PROMPT}{command}\n{answer}"
        for command, answer in zip(commands(script), answers, strict=True)
    ]
    whole = "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)
    (FOLDER / f"{script}.{program}.answers").write_text(whole)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as here:
        name, build = sys.argv[1:3]
        path = unpacked(build, Path(here))
        gdb = gdb_for(path)
        assert gdb is not None, "rustc has printers for gdb"
        store(name, build, ask(gdb, name, path))
