"""Boots to a shell and out again, here and in qemu-system, in turn: their CPU time.

`python tests/benchmarks/boot.py [--runs N] [--json] IMAGE...`. Both boot the same kernel with the
same words to the same ramdisk, whose shell resets the machine: `kprobe-tui boot`, its clock on as
always, and `qemu-system-x86_64` without KVM (TCG), its BIOS included. Both unpack the kernel. A
figure is the CPU time, the wall clock and the peak memory of a process, the least of N runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.session.headless.bootable import COMMAND_LINE
from tests.benchmarks import measuring
from tests.benchmarks.measuring import Spent

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_INIT: Final = "#!/bin/sh\necho up\nbusybox reboot -f\n"
_MEMORY: Final = 256
_TARGETS: Final = {"6.1": 1.0, "6.12": 1.3}
_ENVIRONMENT: Final = {"PYTHONPATH": str(_CHECKOUT), "LC_ALL": "C"}
_LIMIT: Final = 300.0


def ramdisk(folder: Path) -> Path:
    """An initial ramdisk whose init says that it is up, and resets the machine."""
    init, made = folder / "init", folder / "initrd.gz"
    init.write_text(_INIT)
    script = _CHECKOUT / "samples" / "initrd.sh"
    subprocess.run(["sh", script, made], env={**os.environ, "INIT": str(init)}, check=True)
    return made


def commands(image: str, disk: Path) -> dict[str, list[str]]:
    """The commands of both sides for an image."""
    ours = [sys.executable, "-P", "-m", "tui", "boot", "--append", "quiet"]
    ours += ["--memory", f"{_MEMORY}M", "--initrd", str(disk)]
    theirs = ["qemu-system-x86_64", "-accel", "tcg", "-m", str(_MEMORY), "-kernel", image]
    theirs += ["-initrd", str(disk), "-append", f"{COMMAND_LINE} quiet"]
    return {
        "first": [*ours, image],
        "again": [*ours, image],
        "qemu": [*theirs, "-nographic", "-no-reboot", "-nic", "none"],
    }


def measured(image: str, disk: Path, runs: int) -> dict[str, Spent]:
    """The least of several runs of each side, in turn."""
    found: dict[str, list[Spent]] = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:  # of one turn: `first` fills it
            for side, words in commands(image, disk).items():
                kept = {**_ENVIRONMENT, "XDG_CACHE_HOME": cache}
                spent = measuring.run_process(words, kept, limit=_LIMIT)
                if b"up" not in spent.output:
                    raise RuntimeError(f"{side}: {image} has not come to its shell")
                found.setdefault(side, []).append(spent)
    return {side: min(all_of, key=lambda one: one.cpu) for side, all_of in found.items()}


def version(image: str) -> str:
    """The first two numbers of a kernel's version, by the name of its file."""
    return ".".join(Path(image).name.removeprefix("vmlinuz-").split(".")[:2])


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("images", nargs="+")
    options = parser.parse_args()
    if shutil.which("qemu-system-x86_64") is None:
        parser.error("needs qemu-system-x86_64 (qemu-system-x86)")
    facts, rows = measuring.machine(), list[dict[str, object]]()
    with tempfile.TemporaryDirectory() as folder:
        disk = ramdisk(Path(folder))
        for image in options.images:
            found = measured(image, disk, options.runs)
            sides = {
                f"{side}_{what}": round(value, 2)
                for side, spent in found.items()
                for what, value in (
                    ("cpu_s", spent.cpu), ("wall_s", spent.wall), ("peak_mb", spent.peak / 1024)
                )
            }  # fmt: skip
            ratios = {
                f"{side}_ratio": round(found[side].cpu / found["qemu"].cpu, 2)
                for side in ("first", "again")
            }
            rows.append({"kernel": version(image), **sides, **ratios})
    if options.json:
        print(json.dumps({**facts, "rows": rows}))
        return
    print(measuring.heading(facts))
    print(measuring.table(list(rows[0]), [[str(each) for each in row.values()] for row in rows]))
    for row in rows:
        reach = _TARGETS.get(str(row["kernel"]))
        for side in ("first", "again") if reach is not None else ():
            ratio = float(str(row[f"{side}_ratio"]))
            told = measuring.verdict(ratio, reach or 0, reach or 0)
            print(f"{row['kernel']}, {side}: {ratio} of qemu's CPU, {reach} wanted: {told}")


if __name__ == "__main__":
    main()
