"""CodeMap rules: on a live kernel's matrix, on compiled functions, on what they must not say."""

import json
from pathlib import Path

import pytest
from compiled import build

from engine.arch.plan import Mode, Rules
from engine.probes.placement_rules import RULES, Judgement, judge
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.config import GuestConfig

CHECKOUT = Path(__file__).resolve().parents[3]
DATA = CHECKOUT / "tests" / "data" / "uprobes"
INSNS = DATA / "kf_insns"
MATRIX = json.loads((DATA / "matrix-6.18.json").read_text())["matrix"]


def verdicts(path: Path, mode: Mode = Mode.STRICT) -> Verdicts:
    opened = OpenedProgram.open(GuestConfig(guest=str(path)))
    return Verdicts(opened.arch, opened.inspected(), mode)


def at(found: Verdicts, text: str, rules: Rules = Rules.KPROBE) -> Judgement:
    place = found.places.resolve(text)[0]
    site = found.site(place)
    site.rules = rules
    return judge(site)


def rules_of(judgement: Judgement) -> set[str]:
    return {finding.rule for finding in judgement.findings}


def test_kernel_mode_gives_the_kernels_verdicts() -> None:
    found = verdicts(INSNS, Mode.KERNEL)
    for entry in MATRIX:
        judgement = at(found, f"{INSNS}:{entry['offset']}", Rules.UPROBE)
        assert (judgement.errno or "ok") == entry["verdict"], entry["name"]


# -- boundaries ---------------------------------------------------------------------------


def test_the_middle_of_an_instruction() -> None:
    strict, kernel = verdicts(INSNS), verdicts(INSNS, Mode.KERNEL)
    for rules, mode, accepted in (
        (Rules.KPROBE, strict, False),
        (Rules.UPROBE, strict, False),
        (Rules.KPROBE, kernel, False),
        (Rules.UPROBE, kernel, True),
    ):
        judgement = at(mode, "i_mov_rr+1", rules)
        assert judgement.ok is accepted
        assert "boundary" in rules_of(judgement)
    judgement = at(strict, "i_mov_rr+1")
    assert judgement.errno == "EILSEQ"
    finding = judgement.findings[0]
    assert finding.nearest == strict.places.resolve("i_mov_rr")[0].link
    assert "'mov rbx, rax' (48 89 c3)" in finding.message
    assert "'mov ebx, eax' (89 c3)" in finding.message


def test_alignment_on_aarch64() -> None:
    sample = CHECKOUT / "samples" / "bin" / "aarch64" / "sort"
    for mode in Mode:
        judgement = at(verdicts(sample, mode), "main+2")
        assert (judgement.ok, judgement.errno) == (False, "EINVAL")
        assert at(verdicts(sample, mode), "main+4").ok


def test_a_refused_instruction_names_a_better_place() -> None:
    judgement = at(verdicts(INSNS), "i_int3")
    assert not judgement.ok
    assert judgement.findings[0].rule == "instruction"
    assert [check.rule for check in judgement.checks if not check.ok] == ["instruction"]


# -- what is no code ----------------------------------------------------------------------

_PARTS = """
.text
.globl main, table, entry, alias, behind
.type main, @function
main: xor %eax, %eax
  ret
.size main, . - main
.type table, @object
table: .long 1, 2, 3, 4
.size table, . - table
.type entry, @function
.type alias, @function
entry:
alias: cmp %edi, %esi
  mov $1, %eax
  je 1f
  mov %edi, -8(%rsp)
  mov %esi, -16(%rsp)
  nop
  mov -8(%rsp), %eax
  nop
1: ret
.size entry, . - entry
.size alias, . - alias
.zero 16, 0xcc
behind: ret
.section .note.GNU-stack,"",@progbits
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return verdicts(build(tmp_path_factory.mktemp("parts"), "parts", _PARTS, "-no-pie"))


def test_data_is_no_place(parts: Verdicts) -> None:
    judgement = at(parts, "table+4")
    assert (judgement.ok, rules_of(judgement)) == (False, {"data"})
    judgement = at(parts, "__data_start")
    assert (judgement.ok, judgement.findings[0].rule) == (False, "executable")
    assert judgement.errno == "EINVAL"


def test_a_place_outside_all_functions_is_a_warning(parts: Verdicts) -> None:
    behind = parts.places.resolve("behind")[0].link
    assert "no-function" in rules_of(at(parts, f"{behind - 8:#x}"))


def test_names_that_share_code(parts: Verdicts) -> None:
    judgement = at(parts, "entry")
    assert "alias" in rules_of(judgement)
    assert "overlap" not in rules_of(judgement)
    assert "alias" not in rules_of(at(parts, "main"))


def test_flags_in_use_between_compare_and_branch(parts: Verdicts) -> None:
    start = parts.places.resolve("entry")[0].link
    live = [a for a in range(start, start + 9) if "flags" in rules_of(at(parts, f"{a:#x}"))]
    assert live == [start + 2, start + 7]
    finding = next(f for f in at(parts, f"{start + 2:#x}").findings if f.rule == "flags")
    assert finding.message.endswith(": ZF")


def test_the_red_zone_is_in_use_from_store_to_load(parts: Verdicts) -> None:
    start = parts.places.resolve("entry")[0].link + 9
    live = {}
    for offset in (0, 4, 8, 9, 13, 14):
        found = [f for f in at(parts, f"{start + offset:#x}").findings if f.rule == "red-zone"]
        live[offset] = found[0].message[:42] if found else ""
    # The word at -16 is never read: only that at -8 counts, and only until it is.
    assert {offset for offset, text in live.items() if text} == {4, 8, 9}
    assert live[8].startswith("the red zone is in use: 8 to 5 bytes")


# -- what must never be said --------------------------------------------------------------


def test_no_flag_is_live_at_an_entry_and_no_boundary_is_wrong() -> None:
    """No ABI passes flags, and a compiler's functions decode from their start to their end."""
    program = next((p for p in map(Path, ("/bin/ls", "/usr/bin/dash")) if p.exists()), None)
    if program is None:
        pytest.skip("no program here")
    found = verdicts(program, Mode.STRICT)
    count = 0
    for placed in found.of_all():
        count += 1
        rules = rules_of(placed.judgement)
        assert not rules & {"boundary", "data", "section", "executable"}, placed.place
        if placed.place.offset == 0:
            assert "flags" not in rules, placed.place
    assert count > 1000


def test_rules_have_different_ids() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(rule.title and rule.severity in ("error", "warning", "info") for rule in RULES)
