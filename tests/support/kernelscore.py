"""Kernel images asked what real kernels were asked: equal answers, of how many, and the others.

Run as a script it scores the files of a folder that is laid out as `tests/data/kernel`, prints
a line for each, and each difference: `kernelscore.py [--golden DIR] [--images DIR] [KERNEL...]`.
Rows about modules that were loaded are counted apart, as an image alone does not know them, unless
`--modules DIR` has these.
"""

import argparse
import errno
import json
import lzma
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btftypes import BtfFunction
from engine.session.kernel.definition_answers import ImageKernel, defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import KernelRow, error_name
from engine.session.protocol.kernels import KernelChoice
from engine.trace.kprobe_events import KPROBE_EVENTS, KprobeEvents

KINDS = {"optimised": "jump", "ftrace": "ftrace", "breakpoint": "breakpoint"}
HASHED = re.compile(r"0x[0-9a-f]{16}")
IMAGES = {
    "amd64-6.1": "vmlinuz-6.1.0-56-amd64",
    "amd64-6.12": "vmlinuz-6.12.117+deb13-amd64",
    "arm64-6.1": "vmlinuz-6.1.0-56-arm64",
    "uml-6.1": "linux.uml",
}
"""Folder of what a kernel said, to its image."""
_KIND = re.compile(r"([0-9a-f]{16})  ([kr])  (\S+?)(?:\s+(\S+))?\s+((?:\[\w+\])*)$")


@dataclass
class Score:
    """How a file went.

    Attributes:
        equal: rows.
        total: of them, without those about modules.
        modules: rows about modules that were loaded.
        differences: the others, in words.
    """

    equal: int = 0
    total: int = 0
    modules: int = 0
    differences: list[str] = field(default_factory=list)

    def count(self, wanted: object, given: object, what: str) -> None:
        """A row: as the kernel had it, and as we have it."""
        self.total += 1
        if wanted == given:
            self.equal += 1
        else:
            self.differences.append(f"{what}: {wanted!r}, not {given!r}")


class ScoredKernel:
    """One kernel's image and what that kernel said."""

    def __init__(
        self, folder: Path, image: Path, rows: str = "given", modules: Path | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            folder: of what it said.
            image: its file.
            rows: the part of the split files that is read.
            modules: folder of the modules that were loaded; None = they are not at hand.
        """
        self._files = modules
        self.folder = folder
        self._image = image
        self._rows = rows

    @cached_property
    def opened(self) -> OpenedKernel:
        """The image."""
        modules: tuple[str, ...] = ()
        if self._files is not None:
            lines = [line.split()[3] for line in self.text("kallsyms") if "\t" in line]
            names = [name.strip("[]") for name in dict.fromkeys(reversed(lines))]
            found = {each.name.split(".")[0]: str(each) for each in self._files.iterdir()}
            modules = tuple(found[name] for name in names)
        return OpenedKernel.open(self._image, KernelChoice(modules=modules))

    def rows(self, name: str) -> Iterator[Any]:
        """The rows of a split file; none where there is no such file."""
        path = self.folder / f"{name}.{self._rows}.jsonl.xz"
        if path.is_file():
            yield from map(json.loads, lzma.decompress(path.read_bytes()).splitlines())

    def text(self, name: str) -> list[str]:
        """The lines of a file."""
        path = self.folder / f"{name}.txt.xz"
        return lzma.decompress(path.read_bytes()).decode().splitlines() if path.is_file() else []

    @cached_property
    def _modules(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of the modules that were loaded, and of their symbols."""
        rows = [line.split() for line in self.text("kallsyms") if "\t" in line]
        return frozenset(row[3].strip("[]") for row in rows), frozenset(row[2] for row in rows)

    def in_module(self, line: str) -> bool:
        """True for a line about a module that was loaded and is not at hand."""
        if self._files is not None:
            return False
        modules, symbols = self._modules
        place = line.split()[1] if len(line.split()) > 1 else ""
        module, colon, symbol = place.partition(":")
        if colon and module in modules:
            return True
        return re.split(r"[+%]", symbol if colon else place)[0] in symbols

    def start(self, symbol: str) -> int:
        """The address of a name that is there once."""
        (start,) = self.opened.image.names.all_of(symbol)
        return start


def _code(row: KernelRow) -> int:
    return -int(getattr(errno, row.errno)) if row.errno else 0


def _entries(kernel: ScoredKernel, name: str) -> Score:
    score, asked = Score(), []
    for row in kernel.rows(name):
        if kernel.in_module(f"p {row['sym']}"):
            score.modules += 1
        else:
            asked.append((f"{row['def']}:s/e {row['sym']}", row))
    answers = defined_rows(kernel.opened, [line for line, _ in asked], sequence=False)
    for (line, row), ours in zip(asked, answers, strict=True):
        kind = KINDS[row["kind"]] if row.get("kind") and not row["rc"] else None
        error = row.get("err") if row["rc"] else None
        given = ours.technique if kind is not None else None
        score.count((row["rc"], error, kind), (_code(ours), ours.error or None, given), line)
    return score


def _offsets(kernel: ScoredKernel, name: str) -> Score:
    score, places = Score(), kernel.opened.places
    for row in kernel.rows(name):
        verdict = places.event(kernel.start(row["sym"]) + row["off"])
        refused = verdict.refusal.errno if verdict.refusal is not None else ""
        wanted = error_name(-row["rc"]) if row["rc"] else KINDS[row["kind"]]
        score.count(wanted, refused or verdict.kind, f"{row['sym']}+{row['off']:#x}")
    return score


def _crowded(kernel: ScoredKernel, name: str) -> Score:
    score, places = Score(), kernel.opened.places
    batches: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for row in kernel.rows(name):
        batches[row["b"], row["sym"]].append(row)
    for (_, symbol), rows in batches.items():
        start = kernel.start(symbol)
        armed = sorted(start + row["off"] for row in rows)
        for row in rows:
            verdict = places.crowded(places.event(start + row["off"]), armed)
            score.count(KINDS[row["kind"]], verdict.kind, f"{symbol}+{row['off']:#x}")
    return score


def _raw(kernel: ScoredKernel, name: str) -> Score:
    """Addresses given to register_kprobe; of raw_armed: and what became of them."""
    score, places = Score(), kernel.opened.places
    for text, answer in kernel.rows(name):
        address = int(text, 16)
        if not kernel.opened.image.holds(address):
            score.modules += 1
            continue
        verdict = places.registered(address)
        if name == "raw_kretprobes" and verdict.ok:
            verdict = places.returned(address)
        refused = verdict.refusal.errno if verdict.refusal is not None else ""
        if isinstance(answer, str):
            score.count(KINDS[answer], refused or verdict.kind, text)
        else:
            score.count(error_name(-answer) if answer else "", refused, text)
    return score


def _definitions(kernel: ScoredKernel, name: str) -> Score:
    score, asked = Score(), []
    for row in kernel.rows(name):
        if kernel.in_module(row["line"]):
            score.modules += 1
        else:
            asked.append(row)
    image = ImageKernel(kernel.opened)
    for row in asked:
        # All lines were written to kprobe_events, f: and t: too.
        ours = KprobeEvents(image).take(row["line"], KPROBE_EVENTS)
        score.count(_told(row), _answer(ours), row["line"])
    return score


def _state(kernel: ScoredKernel, name: str) -> Score:
    """Lines that meet the events of lines before them."""
    score, image = Score(), ImageKernel(kernel.opened)
    for row in kernel.rows(name):
        events = KprobeEvents(image)
        for line in row["state_before"]:
            assert not events.take(line).rc, line
        score.count(_told(row), _answer(events.take(row["line"])), row["line"])
    return score


def _told(row: Any) -> tuple[Any, ...]:
    shown = HASHED.sub("0x", row.get("shown") or "") if not row["rc"] else ""
    form = row.get("format") if not row["rc"] else None
    return row["rc"], row.get("err"), row.get("col"), shown, form


def _answer(ours: Any) -> tuple[Any, ...]:
    shown = HASHED.sub("0x", ours.shown) if not ours.rc else ""
    return ours.rc, ours.text, ours.column, shown, ours.format


def _recorded(kernel: ScoredKernel, name: str) -> Score:
    """Of recordings: the definitions that were accepted, the list of kprobes, the formats."""
    score, image = Score(), ImageKernel(kernel.opened)
    for row in kernel.rows(name):
        events = KprobeEvents(image)
        log = [line.split(None, 2) for line in row.get("log", "").splitlines()]
        taken = [words for words in log if len(words) == 3 and words[1] == "def"]
        if kernel.in_module("x") or any(kernel.in_module(words[2]) for words in taken):
            score.modules += 1
            continue
        for rc, _, line in taken:
            ours = events.take(line)
            score.count(rc == "0", not ours.rc, f"{row['scenario']}: {line}")
        for text in (row.get("formats") or "").split("name: ")[1:]:
            title = text.splitlines()[0]
            own = [
                ours
                for one in events.defined
                if one.name[1] == title
                for ours in (_format(image, " ".join(one.probe.definition.words)),)
            ]
            score.count(text.rstrip("\n"), own[0] if own else None, f"format of {title}")
        if "klist" in row:
            _listed(kernel, events, row, score)
    return score


def _format(image: ImageKernel, line: str) -> str:
    form = KprobeEvents(image).take(line).format or ""
    return form.removeprefix("name: ").rstrip("\n")


def _listed(kernel: ScoredKernel, events: KprobeEvents, row: Any, score: Score) -> None:
    """Lines of kprobes/list: address, k or r, place, flags."""
    wanted = []
    for line in row["klist"].splitlines():
        match = _KIND.match(line)
        assert match is not None, line
        wanted.append((int(match[1], 16), match[2], "[FTRACE]" in line, "[OPTIMIZED]" in line))
    places = kernel.opened.places
    given = []
    stand = [one.address for one in events.defined if one.address is not None]
    armed = sorted({places.event(address).address for address in stand})
    for one in events.defined:
        if one.address is None:
            continue
        verdict = places.crowded(places.event(one.address), armed)
        letter = "r" if one.probe.definition.is_return else "k"
        given.append((verdict.address, letter, verdict.kind == "ftrace", verdict.kind == "jump"))
    for each in sorted({*wanted, *given}):
        score.count(wanted.count(each), given.count(each), f"{row['scenario']}: klist {each}")


def _spelling(kind: Any) -> str:
    return re.sub(r"\*(?=\w)", "* ", kind.spelling) if kind is not None else "void"


def _prototypes(kernel: ScoredKernel, name: str) -> Score:
    from engine.image.kernel.btftypes import BtfTypes

    score = Score()
    types = btf_of(kernel.opened.image.elf)
    assert isinstance(types, BtfTypes)
    for row in kernel.rows(name):
        function: BtfFunction | None = types.function(row["func"])
        if function is not None and function.id != row["id"]:
            function = types._function(row["id"])  # the first of a name is ours, bpftool has all
        given = None
        if function is not None:
            given = [parameter.name for parameter in function.parameters]
            given += ["..."] * function.variadic
        score.count([arg[0] for arg in row["args"]], given, row["func"])
    return score


def _blacklist(kernel: ScoredKernel, name: str) -> Score:
    score, names = Score(), kernel.opened.image.names
    given = []
    for start, end in kernel.opened.sites.blacklist_ranges:
        place = names.at(start)
        given.append(f"0x{start:016x}-0x{end:016x}\t{place.name if place else ''}")
    wanted = kernel.text("kprobe_blacklist")
    for number, line in enumerate(wanted):
        score.count(line, given[number] if number < len(given) else None, f"line {number + 1}")
    for line in given[len(wanted) :]:
        score.count(None, line, "more")
    return score


def _kallsyms(kernel: ScoredKernel, name: str) -> Score:
    score, given = Score(), list(kernel.opened.image.names.lines())
    wanted = [line for line in kernel.text("kallsyms") if "\t" not in line]
    score.modules = len(kernel.text("kallsyms")) - len(wanted)
    for number, line in enumerate(wanted):
        score.count(line, given[number] if number < len(given) else None, f"line {number + 1}")
    score.count(len(wanted), len(given), "number of names")
    return score


def _patches(kernel: ScoredKernel, name: str) -> Score:
    """Places that differ in the running kernel, by their bytes there; others may not differ."""
    from kernelgolden import golden_patches_of

    score, golden = Score(), golden_patches_of(kernel.folder)
    live = kernel.opened.live
    held: set[int] = set()
    for address, after in golden.items():
        own = live.read(address, len(after))
        score.count(after.hex(), own.hex(), f"{address:#x}")
        held.update(range(address, address + len(after)))
    for patch in live.patches_in(0, 1 << 64):
        for at in range(len(patch.after)):
            changed = patch.before[at] != patch.after[at]
            if changed and patch.address + at not in held:
                score.count("", patch.after.hex(), f"{patch.address + at:#x} ({patch.cause})")
    return score


SCORERS: dict[str, Callable[[ScoredKernel, str], Score]] = {
    "entries": _entries,
    "kretprobes": _entries,
    "offsets": _offsets,
    "offsets_crowded": _crowded,
    "raw_offsets": _raw,
    "raw_entries": _raw,
    "raw_kretprobes": _raw,
    "raw_armed": _raw,
    "definitions": _definitions,
    "definitions_state": _state,
    "recorded": _recorded,
    "btf_prototypes": _prototypes,
    "kprobe_blacklist": _blacklist,
    "kallsyms": _kallsyms,
    "text_patches": _patches,
}
"""What a kernel was asked, to how the answers are compared."""


def files_of(kernel: ScoredKernel) -> list[str]:
    """The files of a kernel that there are answers for."""
    there = {path.name.split(".")[0] for path in kernel.folder.iterdir()}
    return [name for name in SCORERS if name in there]


def main(words: Sequence[str]) -> int:
    """Score all files; 1 where one in a thousand answers of a kernel or more is another one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", type=Path, default=Path(__file__).parents[1] / "data/kernel")
    parser.add_argument("--images", type=Path, default=os.environ.get("KPROBE_TUI_KERNEL_IMAGES"))
    parser.add_argument("--rows", default="given")
    parser.add_argument("--modules", type=Path)
    parser.add_argument("--show", type=int, default=20, help="differences of each file")
    parser.add_argument("kernels", nargs="*", default=list(IMAGES))
    options = parser.parse_args(words)
    worst = 1.0
    for name in options.kernels:
        image = options.images / IMAGES[name]
        kernel = ScoredKernel(options.golden / name, image, options.rows, options.modules)
        equal = total = modules = 0
        for file in files_of(kernel):
            score = SCORERS[file](kernel, file)
            equal, total = equal + score.equal, total + score.total
            modules += score.modules
            print(f"{name} {file}: {score.equal}/{score.total}, {score.modules} of modules")
            for line in score.differences[: options.show]:
                print(f"    {line}")
            sys.stdout.flush()
        print(f"{name}: {equal}/{total} ({equal / total:.4%}), {modules} of modules apart")
        worst = min(worst, equal / total)
    return int(worst < 0.999)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
