"""What places cost: verdicts on all of a program, and a name among very many.

`python tests/benchmarks/places.py [--runs N] [--json] [GUEST]`. Each figure is the least CPU time
of N fresh processes. GUEST is a large program; without it one of the machine's own.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import measuring

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_VERDICTS_TARGET: Final = (4.0, 2.0)  # CPU seconds for so many places: reach, aim
_PLACES: Final = 100_000
_NAME_TARGET: Final = (0.3, 0.15)  # CPU seconds for a listing of one function
_FUNCTIONS: Final = 258_000
_LARGE: Final = ("/bin/bash", "/usr/bin/python3")
_ENVIRONMENT: Final = {"PYTHONPATH": str(_CHECKOUT), "PYTHONDONTWRITEBYTECODE": ""}


def spent(*words: str) -> measuring.Spent:
    """One process of the command line."""
    return measuring.run_process((sys.executable, "-m", "tui", *words), _ENVIRONMENT)


def least(runs: int, *words: str) -> float:
    """The least CPU time of several."""
    return min(spent(*words).cpu for _ in range(runs))


def functions(folder: Path) -> Path | None:
    """A program of very many functions with unwind entries; None without a compiler."""
    if shutil.which("gcc") is None:
        return None
    source, program = folder / "many.s", folder / "many"
    body = ".type f{0},@function\nf{0}:\n.cfi_startproc\nret\n.cfi_endproc\n.size f{0},.-f{0}\n"
    text = "".join(body.format(number) for number in range(_FUNCTIONS))
    source.write_text(f".text\n{text}.globl _start\n_start: ret\n")
    link = ("-nostdlib", "-static", "-Wl,--eh-frame-hdr")
    subprocess.run(["gcc", *link, "-o", program, source], check=True)
    return program


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="Verdicts and names.")
    parser.add_argument("--runs", type=int, default=3, help="of each command (default 3)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("guest", nargs="?")
    options = parser.parse_args()
    guest = options.guest or next(path for path in _LARGE if Path(path).exists())
    places = spent("check", "--all", guest).output.count(b"\n")
    start = least(options.runs, "check", "--help")
    scale = _PLACES / places
    found = {
        form: (least(options.runs, "check", "--all", *words, guest) - start) * scale
        for form, words in (("text", ()), ("summary", ("--summary",)), ("json", ("--json",)))
    }
    with tempfile.TemporaryDirectory() as folder:
        program = functions(Path(folder))
        if program is not None:
            found["name"] = least(options.runs, "disasm", str(program), "f0")
    facts = {**measuring.machine(), "guest": guest, "places": places}
    if options.json:
        print(json.dumps({"facts": facts, "cpu_s": found}, indent=1))
        return 0
    print(measuring.heading(facts), end="\n\n")
    rows = [[f"{_PLACES} verdicts, {form}", f"{found[form]:.2f}"] for form in list(found)[:3]]
    if "name" in found:
        rows.append([f"a name among {_FUNCTIONS}", f"{found['name']:.2f}"])
    print(measuring.table(["CPU s", "min"], rows), end="\n\n")
    print(f"verdicts as text: {measuring.verdict(found['text'], *_VERDICTS_TARGET)}")
    if "name" in found:
        print(f"a name: {measuring.verdict(found['name'], *_NAME_TARGET)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
