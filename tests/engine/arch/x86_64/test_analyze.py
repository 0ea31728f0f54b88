"""Plans: a live kernel's verdicts, its rules, and copies that do what the originals do."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, Verdict
from engine.arch.x86_64.analyze import analyze

TESTS_DATA = Path(__file__).parents[3] / "data" / "uprobes"
MATRIX = json.loads((TESTS_DATA / "matrix-6.18.json").read_text())


def plan(
    text: str, rules: Rules = Rules.UPROBE, mode: Mode = Mode.STRICT, address: int = 0x401000
) -> InsnPlan:
    return analyze(bytes.fromhex(text), address, rules, mode, b"")


@pytest.mark.parametrize("entry", MATRIX["matrix"], ids=lambda entry: entry["name"])
def test_verdicts_of_a_live_kernel(entry: dict[str, str]) -> None:
    raw = bytes.fromhex(entry["bytes"])
    assert (TESTS_DATA / "kf_insns").read_bytes()[int(entry["offset"], 16) :].startswith(raw)
    found = analyze(raw[:15], int(entry["offset"], 16), Rules.UPROBE, Mode.KERNEL, b"")
    assert (found.errno or "ok") == entry["verdict"], found.reason
    assert found.proven
    assert (found.verdict is Verdict.REJECTED) == bool(found.errno)


def test_the_matrix_is_of_this_file() -> None:
    digest = hashlib.sha256((TESTS_DATA / "kf_insns").read_bytes()).hexdigest()
    assert digest == MATRIX["elf"]["sha256"]
    assert len(MATRIX["matrix"]) == 95


@pytest.mark.parametrize(
    ("text", "errno", "rule"),
    [
        ("c4c090", "ENOEXEC", "x86.undecodable"),
        ("660f380cc1", "ENOEXEC", "x86.undecodable"),  # vpermilps without VEX
        ("0f380cc1", "", "x86.copy"),  # without 66 Linux knows of no VEX form either
        ("f20f6fc1", "ENOEXEC", "x86.undecodable"),
        ("66f20f380cc1", "", "x86.copy"),  # the last prefix decides
        ("66c5f877", "ENOTSUPP", "x86.branch-66"),  # vzeroupper, taken for `ja`
        ("482e8b0510000000", "", "x86.rip-relative"),  # a prefix behind a REX: Linux's opcode
        ("2e4890", "ENOTSUPP", "x86.uprobe-prefix"),
        ("2e486690", "ENOTSUPP", "x86.uprobe-prefix"),
        ("48f0ff00", "", "x86.copy"),
        ("4066eb00", "", "x86.emulated"),
        ("40f4", "ENOTSUPP", "x86.uprobe-opcode"),
        ("4066f4", "", "x86.copy"),
        ("4841ccf0", "", "x86.copy"),
        ("66676465f390", "", "x86.copy"),  # the fifth prefix is one too many
        ("4862f17c4810c0", "ENOTSUPP", "x86.uprobe-opcode"),  # EVEX behind a REX
        ("48c4c090", "", "x86.copy"),
        ("488fe97800c0", "", "x86.copy"),
        ("66", "ENOEXEC", "x86.undecodable"),
        ("8ed0", "ENOTSUPP", "x86.mask-exceptions"),
        ("2e7400", "ENOTSUPP", "x86.uprobe-prefix"),
        ("662e0f1f840000000000", "ENOTSUPP", "x86.uprobe-prefix"),
        ("667410", "ENOTSUPP", "x86.branch-66"),
        ("66e900000000", "ENOTSUPP", "x86.branch-66"),
        ("66c3", "", "x86.return"),
        ("c5f9efc0", "ENOTSUPP", "x86.uprobe-opcode"),  # vpxor, taken for `out`
        ("c5f96fc1", "ENOTSUPP", "x86.uprobe-opcode"),
        ("ca0800", "", "x86.far"),
        ("0f05", "", "x86.syscall"),
    ],
)
def test_uprobes_as_the_kernel_reads_them(text: str, errno: str, rule: str) -> None:
    found = plan(text, mode=Mode.KERNEL)
    assert (found.errno, found.rule) == (errno, rule)


REX2_REFUSED = bytes.fromhex(
    "06070e16171e1f272f373f6061626c6d6e6f829acccdcecfd4d5d6e4e5e6e7eaecedeeeff1f4fafb"
)
"""Bytes behind REX2 with which a live 6.18 says ENOTSUPP to a uprobe; it takes all others."""
BRANCHES = bytes.fromhex("707172737475767778797a7b7c7d7e7fe8e9eb")
"""Those it says it to besides behind 66."""


@pytest.mark.parametrize(
    ("front", "refused", "cut"),
    [
        ("d500", REX2_REFUSED, b""),
        ("d511", REX2_REFUSED, b""),
        ("d580", REX2_REFUSED, b""),  # the map of 0f is judged by the one-byte opcodes, too
        ("d508", REX2_REFUSED, b"\x9a\xea"),  # a far pointer of 64 bits is none
        ("66d580", REX2_REFUSED + BRANCHES, b""),
        ("2ed500", bytes(range(256)), b""),
        ("40d500", bytes(range(256)), b""),  # behind a REX it is the opcode d5
        ("f3d500", REX2_REFUSED, b""),
    ],
)
def test_rex2_as_a_live_kernel_reads_it(front: str, refused: bytes, cut: bytes) -> None:
    for opcode in range(256):
        text = f"{front}{opcode:02x}c0"
        expected = "ENOEXEC" if opcode in cut else "ENOTSUPP" if opcode in refused else ""
        assert plan(text, mode=Mode.KERNEL).errno == expected, text
        assert plan(text, mode=Mode.STRICT).errno == (expected or "ENOTSUPP"), text
    assert plan("d5008ed0", mode=Mode.KERNEL).errno == "ENOTSUPP"
    assert plan("d5008e10", mode=Mode.KERNEL).errno == "ENOTSUPP"
    assert plan("d5008ec0", mode=Mode.KERNEL).errno == ""


@pytest.mark.parametrize(
    ("text", "errno", "rule"),
    [
        ("d500ccc0", "EILSEQ", "x86.exception"),
        ("d5008ed0", "EINVAL", "x86.mask-exceptions"),
        ("d500cfc0", "EOPNOTSUPP", "x86.far"),
        ("d500ff10", "EOPNOTSUPP", "x86.branch-memory"),
        ("67d500ffd0", "EOPNOTSUPP", "x86.address-size"),
        ("d5089ac0", "EILSEQ", "x86.undecodable"),
        ("d50001c0", "", "x86.copy"),
        ("cc", "EILSEQ", "x86.exception"),
        ("cd80", "EILSEQ", "x86.exception"),
        ("f1", "EILSEQ", "x86.exception"),
        ("0f0b", "EILSEQ", "x86.exception"),
        ("0fb9c0", "EILSEQ", "x86.exception"),
        ("c4c090", "EILSEQ", "x86.undecodable"),
        ("0f0b78656e0fa2", "EINVAL", "x86.forced-emulation"),
        ("8ed0", "EINVAL", "x86.mask-exceptions"),
        ("cf", "EOPNOTSUPP", "x86.far"),
        ("ff18", "EOPNOTSUPP", "x86.far"),
        ("ff28", "EOPNOTSUPP", "x86.far"),
        ("0f01c1", "EOPNOTSUPP", "x86.vm-extension"),
        ("ff10", "EOPNOTSUPP", "x86.branch-memory"),
        ("ff2500000000", "EOPNOTSUPP", "x86.branch-memory"),
        ("67ffe0", "EOPNOTSUPP", "x86.address-size"),
        ("0f05", "", "x86.syscall"),
        ("fa", "", "x86.privileged"),
        ("f00fc102", "", "x86.copy"),
        ("3effe0", "", "x86.emulated"),
        ("f4", "", "x86.copy"),
    ],
)
def test_kprobes_as_the_kernel_reads_them(text: str, errno: str, rule: str) -> None:
    found = plan(text, Rules.KPROBE, Mode.KERNEL)
    assert (found.errno, found.rule) == (errno, rule)
    assert not found.proven


@pytest.mark.parametrize("rules", Rules)
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("66c3", "x86.branch-66"),
        ("66e210", "x86.branch-66"),
        ("66ffe0", "x86.branch-66"),
        ("cb", "x86.far"),
        ("c7f800000000", "x86.xbegin"),
        ("0f34", "x86.kernel-entry"),
        ("0f07", "x86.kernel-entry"),
        ("0f04", "x86.undefined"),
        ("fed0", "x86.undefined"),
        ("0fbac001", "x86.undefined"),
        ("8dc0", "x86.undefined"),
        ("48c5f058d0", "x86.undefined"),
    ],
)
def test_only_the_strict_mode_refuses(text: str, rule: str, rules: Rules) -> None:
    assert not plan(text, rules, Mode.KERNEL).errno
    found = plan(text, rules)
    assert (found.verdict, found.rule) == (Verdict.REJECTED, rule)
    assert found.errno == ("ENOTSUPP" if rules is Rules.UPROBE else "EOPNOTSUPP")


@pytest.mark.parametrize(
    ("text", "uprobe", "kprobe"),
    [
        ("90", Verdict.EMULATED, Verdict.XOL),
        ("f390", Verdict.XOL, Verdict.XOL),
        ("0f1f440000", Verdict.EMULATED, Verdict.XOL),
        ("55", Verdict.EMULATED, Verdict.XOL),
        ("4155", Verdict.EMULATED, Verdict.XOL),
        ("4855", Verdict.XOL, Verdict.XOL),
        ("e800000000", Verdict.EMULATED, Verdict.EMULATED),
        ("7510", Verdict.EMULATED, Verdict.EMULATED),
        ("0f8510000000", Verdict.EMULATED, Verdict.EMULATED),
        ("e2fe", Verdict.XOL, Verdict.EMULATED),
        ("c3", Verdict.XOL, Verdict.EMULATED),
        ("ffd0", Verdict.XOL, Verdict.EMULATED),
        ("9c", Verdict.XOL, Verdict.EMULATED),
        ("9d", Verdict.XOL, Verdict.EMULATED),
        ("4889c3", Verdict.XOL, Verdict.XOL),
    ],
)
def test_what_is_emulated(text: str, uprobe: Verdict, kprobe: Verdict) -> None:
    for mode in Mode:
        assert plan(text, Rules.UPROBE, mode).verdict is uprobe
        assert plan(text, Rules.KPROBE, mode).verdict is kprobe


@pytest.mark.parametrize(
    ("text", "rule", "kernel", "strict"),
    [
        ("c5f171d101", "x86.uprobe-vex-jump", "jump to 0x401006 if the flags say no", ""),
        ("c5fa7ec0", "x86.uprobe-vex-jump", "jump to 0x401004 if the flags say le", ""),
        ("c5f1e8d1", "x86.uprobe-vex-call", "push the return address 0x401004", ""),
        ("c5f890d1", "x86.uprobe-vex-nop", "do nothing", ""),
        ("8fe97890d1", "x86.uprobe-vex-nop", "do nothing", ""),
        ("62f1fd4870d101", "x86.uprobe-vex-jump", "jump to 0x401008 if the flags say o", ""),
        ("d50070d1", "x86.uprobe-rex2", "jump to 0x400fd5 if the flags say o", "x86.undefined"),
        ("d58070d105", "x86.uprobe-rex2", "jump to 0x40100a if the flags say o", "x86.undefined"),
        ("d580e8d1", "x86.uprobe-rex2", "push the return address 0x401004", "x86.undefined"),
        ("4190", "x86.uprobe-xchg", "do nothing", "x86.copy"),
        ("c5f0c2d107", "x86.uprobe-vex-return", Fixup.STRANDED, ""),
        ("c4e2719dd1", "x86.uprobe-vex-popf", Fixup.STEP_FLAG, ""),
    ],
)
def test_linux_takes_it_for_another_instruction(
    text: str, rule: str, kernel: str | Fixup, strict: str
) -> None:
    found = plan(text, Rules.UPROBE, Mode.KERNEL)
    assert (found.rule, bool(found.wrong)) == (rule, True)
    if isinstance(kernel, Fixup):
        assert found.fixups[-1] is kernel
        assert found.copy.hex() == text
    else:
        assert found.operation is not None
        assert found.operation.text.startswith(kernel)
    assert plan(text, Rules.UPROBE, Mode.STRICT).rule == (strict or rule)
    assert not plan(text, Rules.KPROBE, Mode.KERNEL).wrong


@pytest.mark.parametrize(
    ("text", "fixups", "operation"),
    [
        ("c3", (), True),
        ("c20800", (), True),
        ("ffe0", (), True),
        ("ff20", (), True),
        ("ff2510000000", (Fixup.SCRATCH,), True),
        ("ffd0", (Fixup.CALL,), True),
        ("ff1510000000", (Fixup.CALL, Fixup.SCRATCH), True),
        ("e2fe", (Fixup.IP,), True),
        ("67e3fe", (Fixup.IP,), True),
        ("9d", (Fixup.IP, Fixup.FLAGS), False),
        ("9c", (Fixup.IP,), False),
        ("0f05", (Fixup.IP,), False),
        ("488b0510000000", (Fixup.IP, Fixup.SCRATCH), False),
        ("ff3510000000", (Fixup.IP, Fixup.SCRATCH), False),
        ("6650", (Fixup.IP,), False),
    ],
)
def test_fixups_of_uprobes(text: str, fixups: tuple[Fixup, ...], operation: bool) -> None:
    found = plan(text)
    assert (found.verdict, found.fixups) == (Verdict.XOL, fixups)
    assert (found.operation is not None) == operation
    assert found.copy == found.raw


def test_pushf_shows_the_single_step_as_linux_does() -> None:
    assert plan("9c", mode=Mode.KERNEL).fixups == (Fixup.IP, Fixup.TRACE_FLAG)


# The list of opcodes in can_boost, in words; a slot has 16 bytes, the jump back 5.
@pytest.mark.parametrize(
    ("text", "boosted"),
    [
        ("4889c3", True),
        ("90", True),
        ("0f1f440000", True),
        ("55", True),
        ("488b0510000000", True),
        ("48b88877665544332211", True),
        ("c78424000100000100000090", True),  # 11 bytes
        ("48c78424000100000100000090", False),  # 12 bytes
        ("2e89c3", False),
        ("678b00", False),
        ("672e0fafc1", True),  # prefixes count for one-byte opcodes only
        ("d9e8", False),
        ("d0f0", False),
        ("f6c801", False),
        ("fec0", True),
        ("ff30", False),
        ("e4ff", True),
        ("f4", False),
        ("f3a4", False),
        ("a4", True),
        ("0fa2", False),
        ("0f05", False),
        ("0fc7f0", False),
        ("0f58c1", False),
        ("660f38dcc8", False),
        ("c3", False),
        ("7510", False),
    ],
)
def test_boostable(text: str, boosted: bool) -> None:
    assert plan(text, Rules.KPROBE).boostable is boosted
    assert not plan(text, Rules.UPROBE).boostable


def test_repeats() -> None:
    assert plan("f3a4").repeats
    assert plan("f2ae", Rules.KPROBE).repeats
    assert not plan("a4").repeats
    assert not plan("f3c3").repeats
    assert not plan("f30f10c1").repeats


@pytest.mark.parametrize(
    ("text", "scratch", "copy"),
    [
        ("488b0510000000", "rsi", "488b8610000000"),
        ("488b3510000000", "rdi", "488bb710000000"),
        ("4d8b3510000000", "rdi", "4c8bb710000000"),  # r14 counts as rsi; REX.B goes
        ("480fc70d10000000", "rsi", "480fc78e10000000"),  # cmpxchg16b uses rbx
        ("c4e24bf63d10000000", "rbx", "c4e24bf6bb10000000"),  # mulx: vvvv is rsi, reg rdi
        ("c4c24bf60d10000000", "rdi", "c4e24bf68f10000000"),
        ("c5f0580510000000", "rsi", "c5f0588610000000"),
        ("62f17548fe1540000000", "rsi", "62f17548fe9640000000"),
        ("c7051000000001000000", "rsi", "c7861000000001000000"),
    ],
)
def test_scratch_registers(text: str, scratch: str, copy: str) -> None:
    for rules in Rules:
        found = plan(text, rules)
        assert (found.scratch, found.scratch_copy.hex()) == (scratch, copy)
        assert found.displacement == len(found.raw) - (8 if text[:2] == "c7" else 4)


def test_reasons_are_plain_words() -> None:
    assert plan("2e8b00").reason == "segment-override prefix 2e: uprobes refuse it"
    assert plan("f00fc102").reason == "lock prefix f0: uprobes refuse it"
    assert plan("488b0510000000", Rules.KPROBE).reason == "copied; displacement rebased"
    assert "push the return address 0x401005" in plan("e800000000").reason
    assert plan("06").reason == "opcode 06 is on the list that uprobes refuse"
    assert plan("", Rules.KPROBE).reason == "no instruction begins with nothing"


def test_plans_hold_together() -> None:
    """Over random bytes: strict refuses what the kernel does, and every plan is whole."""
    rng = random.Random(6)
    for _ in range(20_000):
        raw = rng.randbytes(15)
        for rules in Rules:
            kernel = analyze(raw, 0x401000, rules, Mode.KERNEL, b"")
            strict = analyze(raw, 0x401000, rules, Mode.STRICT, b"")
            for found in (kernel, strict):
                assert found.reason
                assert found.rule
                assert raw.startswith(found.raw)
                refused = found.verdict is Verdict.REJECTED
                assert refused == bool(found.errno) != (found.verdict is not Verdict.REJECTED)
                assert (found.copy == found.raw) == (found.verdict is Verdict.XOL)
                if found.verdict is Verdict.EMULATED:
                    assert found.operation is not None
                assert not (found.boostable and (found.operation or found.repeats))
                assert (found.scratch is None) == (found.displacement is None)
            if kernel.errno:
                assert (strict.errno, strict.rule) == (kernel.errno, kernel.rule)
