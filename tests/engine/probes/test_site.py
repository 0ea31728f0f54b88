"""Neighbours share what they lie in: the same as each finds for itself."""

import random
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest
from goldenruns import build_guest
from sessionkit import SAMPLES

from engine.arch.plan import Mode, Rules
from engine.image import ElfImage, SymbolTable, find_fde
from engine.image.headers import PF_X
from engine.insn.disasm import Disassembler
from engine.probes.placement_rules import RULES
from engine.probes.site import ImageCode
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.config import GuestConfig

GUESTS = ("x86_64/structs", "aarch64/jumps", "riscv64/words", "ia64/recursion")
BIAS = 0x5000000


def opened(guest: str) -> OpenedProgram:
    return OpenedProgram.open(GuestConfig(guest=str(SAMPLES / guest)))


def addresses(image: ElfImage) -> list[int]:
    """All that is executable, and a little of what is beside it."""
    found: set[int] = set()
    for segment in image.load_segments:
        edge = [segment.vaddr - 1, segment.vaddr, segment.vaddr + segment.memsz]
        found.update(at for at in edge if at >= 0)
        if segment.flags & PF_X:
            found.update(range(segment.vaddr, segment.vaddr + segment.memsz))
    return sorted(found)


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize("bias", [0, BIAS])
def test_a_stretch_holds_for_all_of_it(guest: str, bias: int) -> None:
    program = opened(guest)
    image, symbols = program.image, SymbolTable(program.image)
    code = ImageCode(program.arch, image, symbols, bias=bias)
    functions = [s for s in symbols.functions() if s.size]
    for link in addresses(image):
        stretch = code.stretch(link + bias)
        assert stretch.start <= link + bias < stretch.end
        symbol = symbols.at(link)
        found = stretch.symbol
        assert (found and (found.name, found.address - bias)) == (
            symbol and (symbol.name, symbol.address)
        )
        assert stretch.segment == code.segment(link + bias)
        assert stretch.section == code.section(link + bias)
        over = sorted(
            (s.address + bias, s.address + s.size + bias, s.name)
            for s in functions
            if s.address <= link < s.address + s.size
        )
        assert sorted(code.functions_at(link + bias)) == over


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize("mode", Mode)
def test_the_order_of_questions_does_not_matter(guest: str, mode: Mode) -> None:
    """A rule that is silent in a stretch would have found nothing at any place of it."""
    program = opened(guest)
    ordered = Verdicts(program.arch, program.inspected(), mode)
    shuffled = Verdicts(program.arch, program.inspected(), mode)
    placed = list(ordered.of_all())
    random.Random(1).shuffle(placed)
    for one in placed[:1500]:
        other = shuffled.judge(one.place)
        assert other.judgement.findings == one.judgement.findings
        site = shuffled.site(one.place)
        every = [rule.check(site) for rule in RULES]
        if any(f and f.rule in ("executable", "section", "data") for f in every):
            continue
        assert list(one.judgement.findings) == [found for found in every if found is not None]


@pytest.mark.parametrize("guest", GUESTS[:3])
@pytest.mark.parametrize("mode", Mode)
def test_the_first_condition_is_that_of_the_checklist(guest: str, mode: Mode) -> None:
    program = opened(guest)
    verdicts = Verdicts(program.arch, program.inspected(), mode)
    for one in verdicts.of_all():
        lacks = one.lacks
        assert lacks == next((check.rule for check in one.jump if not check.ok), "")
        assert (one.technique == "jump") is (one.judgement.ok and not lacks)


def one_by_one(verdicts: Verdicts, rules: Rules) -> Iterator[str]:
    for one in verdicts.of_all(rules):
        placed = verdicts.judge(one.place)
        yield f"{placed.place.link:#x} {placed.outcome}"


def at_once(verdicts: Verdicts, rules: Rules) -> Iterator[str]:
    for _, found in verdicts.outcomes(rules):
        for address, outcome in found:
            yield f"{address:#x} {outcome}"


@pytest.mark.parametrize(
    "guest", ["x86_64/words", "aarch64/loop", "riscv64/words", "ia64/recursion"]
)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("rules", Rules)
def test_outcomes_of_a_function_are_those_of_its_places(
    guest: str, mode: Mode, rules: Rules
) -> None:
    program = opened(guest)
    verdicts = Verdicts(program.arch, program.inspected(), mode)
    assert list(at_once(verdicts, rules)) == list(one_by_one(verdicts, rules))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
@pytest.mark.parametrize("mode", Mode)
def test_outcomes_of_a_program_that_throws(arch: str, mode: Mode) -> None:
    """A static program of C++: exceptions, parts of functions elsewhere, data in code."""
    program = opened(str(build_guest(arch, "exc-static")))
    verdicts = Verdicts(program.arch, program.inspected(), mode)
    pairs = zip(at_once(verdicts, Rules.KPROBE), one_by_one(verdicts, Rules.KPROBE), strict=True)
    for here, there in islice(pairs, 20_000):
        assert here == there


@pytest.mark.parametrize("guest", GUESTS[:3])
def test_what_a_function_says_of_all_its_instructions(guest: str) -> None:
    program = opened(guest)
    symbols = SymbolTable(program.image)
    decode = Disassembler(program.arch).decode
    code = ImageCode(program.arch, program.image, symbols, decode)
    suspects, target_of = program.arch.suspects, program.arch.probes.target
    for symbol in symbols.functions():
        function = code.function(symbol.address, symbol.size)
        insns = [function.numbered(number) for number in range(len(function.starts))]
        assert insns == [function.around(at) for at in function.starts]
        pairs = {at: list(pairwise(raw)) for at, raw in insns}
        assert function.suspicious == {
            at
            for at, found in pairs.items()
            if any(two in suspects.get(one, ()) for one, two in found)
        }
        first: dict[int, int] = {}
        for at, raw in insns:
            target = target_of(raw, at)
            if target is not None:
                first.setdefault(target, at)
        end = function.start + len(function.data)
        for low in range(function.start, end):
            inside = [(at, there) for there, at in first.items() if low <= there < low + 6]
            inside = [(at, there) for at, there in inside if there < end]
            found = function.inward.into(low, low + 6)
            assert (found and found[::-1]) == (min(inside) if inside else None)


@pytest.mark.parametrize("guest", GUESTS)
def test_unwind_entries_remembered(guest: str) -> None:
    path = Path(SAMPLES / guest)
    image = ElfImage.open(path)
    near = addresses(image)[::3]
    ordered = [fde and (fde.start, fde.size) for fde in (find_fde(image, at) for at in near)]
    other = ElfImage.open(path)
    order = list(range(len(near)))
    random.Random(2).shuffle(order)
    for number in order[:2000]:
        fde = find_fde(other, near[number])
        assert (fde and (fde.start, fde.size)) == ordered[number]
