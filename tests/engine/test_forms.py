"""Every form of an instruction that the disassembler knows, against a processor or qemu.

Each gets random operands in registers and memory, aligned and not. The slow tests try each form
a few times; `KPROBE_TUI_FORMS=200` has it tried so often, which takes hours on a busy machine, and
`KPROBE_TUI_FORMS_SEED` draws another lot. What differs and is one of the limits in the handbook
is counted; anything else fails.
"""

import os
import subprocess
from collections import Counter
from pathlib import Path

import a64forms
import a64snippets
import pytest
import rvforms
import rvsnippets
import snippets
import x86forms
from compiled import build, tool

from engine.cpu import native

DATA = Path(__file__).parents[1] / "data" / "snippets"
RUNS = int(os.environ.get("KPROBE_TUI_FORMS", "0"))
"""Cases of each form; 0: a few."""
SEED = int(os.environ.get("KPROBE_TUI_FORMS_SEED", "38"))
LOT = 20_000
"""Cases that one run of a guest tries."""
pytestmark = pytest.mark.slow


class Tally:
    """What was tried, and what differed."""

    def __init__(self) -> None:
        self.tried = 0
        self.limits: Counter[str] = Counter()
        self.found: list[tuple[str, object]] = []

    def note(self, limit: str, text: str, difference: object) -> None:
        """A case that differs: by a known limit, or in another way."""
        if limit:
            self.limits[limit] += 1
        else:
            self.found.append((text, difference))

    def judge(self, forms: int) -> None:
        """Tell the figures, and fail if anything differs that is not a known limit."""
        print(f"{forms} forms, {self.tried} executions, {len(self.found)} differ")
        print(*(f"{count:7} {limit}" for limit, count in self.limits.most_common()), sep="\n")
        assert self.found == [], f"{len(self.found)} differ (ours, theirs): {self.found[:8]}"


def of_intel() -> bool:
    """True if the host's processor is Intel's: others differ in corners."""
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


@pytest.mark.skipif(
    not native.possible(), reason="the host is no x86-64 to ask, or its code is not wanted"
)
@pytest.mark.skipif(not of_intel(), reason="these are the results of an Intel processor")
def test_x86_64(tmp_path: Path) -> None:
    options = ("-static", "-no-pie", "-O1")
    program = build(tmp_path, "forms", (DATA / "x86_64.c").read_text(), *options)
    maker, tally = x86forms.Cases(SEED), Tally()
    forms = x86forms.forms()
    wanted = [
        form for form in forms for _ in range((RUNS if not form.locked else -(-RUNS // 10)) or 1)
    ]
    for at in range(0, len(wanted), LOT):
        pairs: list[tuple[x86forms.Form, snippets.Case]] = []
        for form in wanted[at : at + LOT]:
            case = maker.of(form, len(pairs))
            if case is not None:
                pairs.append((form, case))
        cases = [case for _, case in pairs]
        tally.tried += len(cases)
        ours = snippets.run(program, tmp_path, cases, *snippets.EMULATOR)
        theirs = snippets.run(program, tmp_path, cases)
        form_of = {id(case): form for form, case in pairs}
        for case, difference in snippets.differences(cases, ours, theirs):
            form = form_of[id(case)]
            text = f"{case.code.hex()} {case.name}"
            tally.note(x86forms.known(form, difference), text, difference)
    tally.judge(len(forms))


def asked(program: Path, files: tuple[bytes, bytes], *under: str) -> list[bytes]:
    """The states afterwards: ours, and those that qemu makes."""
    names = ("code", "states")
    for name, content in zip(names, files, strict=True):
        (program.parent / name).write_bytes(content)
    return [
        subprocess.run(
            [*words, program, *names], cwd=program.parent, capture_output=True, check=True
        ).stdout
        for words in (snippets.EMULATOR, under)
    ]


def test_aarch64(tmp_path: Path) -> None:
    program = tmp_path / "forms"
    gcc = (tool("aarch64-linux-gnu-gcc"), "-static", "-O1", "-w", "-ffixed-x18", "-o")
    subprocess.run([*gcc, program, DATA / "aarch64.c"], check=True)
    maker, tally = a64forms.ArmCases(SEED), Tally()
    wanted = [name for name in a64forms.forms() for _ in range(RUNS or 1)]
    for at in range(0, len(wanted), LOT):
        names = wanted[at : at + LOT]
        cases = [maker.of(name, number) for number, name in enumerate(names)]
        tally.tried += len(cases)
        under = (tool("qemu-aarch64"), "-cpu", "max")
        ours, theirs = asked(program, a64forms.files(cases), *under)
        name_of = {id(case): name for case, name in zip(cases, names, strict=True)}
        for case, difference in a64snippets.differences(cases, ours, theirs):
            limit = a64forms.known(name_of[id(case)], difference)
            tally.note(limit, f"{case.word:08x} {case.name}", difference)
    tally.judge(len(a64forms.forms()))


def test_riscv64(tmp_path: Path) -> None:
    program = tmp_path / "forms"
    gcc = (tool("riscv64-linux-gnu-gcc"), "-static", "-O1", "-w", "-o")
    subprocess.run([*gcc, program, DATA / "riscv64.c"], check=True)
    maker, tally = rvforms.RiscvCases(SEED), Tally()
    wanted = [name for name in rvforms.forms() for _ in range(RUNS or 10)]
    for at in range(0, len(wanted), LOT):
        pairs: list[tuple[str, rvsnippets.RiscvCase]] = []
        for name in wanted[at : at + LOT]:
            case = maker.of(name, len(pairs))
            if case is not None:
                pairs.append((name, case))
        cases = [case for _, case in pairs]
        tally.tried += len(cases)
        ours, theirs = asked(program, rvforms.files(cases), tool("qemu-riscv64"))
        name_of = {id(case): name for name, case in pairs}
        for case, words in rvsnippets.differences(cases, ours, theirs):
            difference = {rvforms.WORDS.get(at, str(at)): pair for at, pair in words.items()}
            limit = rvforms.known(name_of[id(case)], difference)
            tally.note(limit, f"{case.code.hex()} {case.name}", difference)
    tally.judge(len(rvforms.forms()))
