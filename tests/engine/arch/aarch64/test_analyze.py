"""Verdicts: as Linux's masks say, stricter where Linux is wrong; and the record's functions."""

import itertools
import random
import struct

import capstone
import pytest
from a64words import words
from barecpu import CODE, BareCpu

from engine.arch.aarch64 import AARCH64
from engine.arch.aarch64.analyze import analyze
from engine.arch.aarch64.exclusive import WINDOW, inside_pair, linux_scan
from engine.arch.aarch64.probes import PROBES
from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, Verdict

ADDRESS = 0x400000
ADD, NOP, RET, B_SELF = 0x8B020020, 0xD503201F, 0xD65F03C0, 0x14000000
LDXR, STXR, CLREX = 0xC85F7C20, 0xC8027C20, 0xD503305F
LDAR, STLR, CAS, CASP, CASPA = 0xC8DFFC20, 0xC89FFC20, 0xC8A07C41, 0x48207C82, 0x48607C82
SVC = 0xD4000001


def pack(*code: int) -> bytes:
    return struct.pack(f"<{len(code)}I", *code)


def plan(word: int, rules: Rules, mode: Mode, before: bytes = b"") -> InsnPlan:
    return analyze(pack(word), ADDRESS, rules, mode, before)


def linux(word: int, rules: Rules) -> Verdict:
    """What Linux 6.18 says, from the masks of its asm/insn.h."""

    def among(*pairs: tuple[int, int]) -> bool:
        return any(word & mask == value for mask, value in pairs)

    literal_load = among((0xBF000000, 0x18000000), (0xFF000000, 0x98000000))
    adr = among((0x1F000000, 0x10000000))
    simulated_branch = among(
        (0x7C000000, 0x14000000),  # b, bl
        (0xFF000010, 0x54000000),
        (0x7C000000, 0x34000000),  # cbz, cbnz, tbz, tbnz
        *((0xFFFFFC1F, 0xD61F0000 | opcode << 21) for opcode in range(3)),  # br, blr, ret
    )
    if word == NOP or adr or simulated_branch or (literal_load and rules is Rules.KPROBE):
        return Verdict.EMULATED
    if word & 0x1C000000 == 0x14000000:
        authenticated = among(
            (0xFEFFF800, 0xD61F0800),
            (0xFEFFF800, 0xD63F0800),
            (0xFFFFFBFF, 0xD65F0BFF),
            (0xFFFFFBFF, 0xD69F0BFF),
        )
        refused = (
            authenticated
            or word == 0xD69F03E0
            or word >> 24 == 0xD4
            or among((0xFFF8F01F, 0xD500401F), (0xFFF00000, 0xD5100000))
            or word & ~31 == 0xD53B4220
        )
        if word & 0xFFFFF01F == 0xD503201F:
            refused = word >> 5 & 127 not in (7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38)
    else:
        refused = literal_load or among(
            (0xFF000000, 0xD8000000), (0x3F800000, 0x08000000), (0x3B200C00, 0x19000400)
        )
    return Verdict.REJECTED if refused else Verdict.XOL


@pytest.mark.parametrize("rules", Rules)
def test_kernel_mode_follows_the_masks_of_linux(rules: Rules) -> None:
    seen = set()
    for word in words(23, per_pattern=100, uniform=20_000):
        made = plan(word, rules, Mode.KERNEL)
        seen.add(made.verdict)
        assert made.verdict is linux(word, rules), hex(word)
        assert made.raw == pack(word)
        assert made.reason
        assert made.rule.startswith("arm64.")
        assert not made.proven
        assert (made.errno != "") == (made.verdict is Verdict.REJECTED)
        assert (made.operation is not None) == (made.verdict is Verdict.EMULATED)
        stepped = made.verdict is Verdict.XOL
        assert made.copy == (made.raw if stepped else b"")
        assert made.fixups == ((Fixup.IP,) if stepped else ())
        assert not made.boostable or (stepped and rules is Rules.KPROBE)
    assert len(seen) == 3


@pytest.mark.parametrize("rules", Rules)
def test_strict_refuses_all_that_the_kernel_refuses(rules: Rules) -> None:
    stricter = set()
    for word in words(29, per_pattern=50, uniform=5_000):
        kernel, strict = (plan(word, rules, mode) for mode in (Mode.KERNEL, Mode.STRICT))
        if strict.verdict is Verdict.REJECTED:
            assert strict.errno == kernel.errno or kernel.verdict is Verdict.XOL
            if kernel.verdict is Verdict.XOL:
                stricter.add(strict.rule)
                assert not kernel.boostable
                assert "although" in kernel.reason
        else:
            assert strict.verdict is kernel.verdict
    assert stricter == {
        *("arm64.literal-simd", "arm64.branch-unknown", "arm64.pc-relative"),
        *("arm64.undefined", "arm64.drps", "arm64.exclusive"),
    }


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        (SVC, "arm64.svc"),
        (0xD4200000, "arm64.brk"),
        (0xD4400020, "arm64.hlt"),
        (0xD69F03E0, "arm64.eret"),
        (0xD51B4200, "arm64.msr"),  # msr nzcv, x0
        (0xD500401F, "arm64.msr"),  # cfinv
        (0xD53B4220, "arm64.mrs-daif"),
        (0xD503203F, "arm64.hint"),  # yield
        (0xD50323BF, "arm64.hint"),  # autiasp
        (0xD65F0BFF, "arm64.branch-auth"),  # retaa
        (0xD8000020, "arm64.literal"),  # prfm
        (LDXR, "arm64.exclusive"),
        (STXR, "arm64.exclusive"),
        (CASP, "arm64.casp"),
        (0x19010440, "arm64.mops"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(word: int, rule: str) -> None:
    for rules, mode in itertools.product(Rules, Mode):
        made = plan(word, rules, mode)
        assert (made.verdict, made.rule, made.errno) == (Verdict.REJECTED, rule, "EINVAL")
        assert made.atomic == (rule == "arm64.exclusive")


def test_reasons_name_the_hint() -> None:
    assert plan(0xD503205F, Rules.UPROBE, Mode.STRICT).reason.startswith("wfe: ")


def test_the_breakpoint_of_uprobes_itself() -> None:
    brk = int.from_bytes(PROBES.uprobe, "little")
    assert plan(brk, Rules.UPROBE, Mode.KERNEL).errno == "ENOTSUPP"
    assert plan(brk, Rules.KPROBE, Mode.KERNEL).errno == "EINVAL"


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_unaligned(offset: int) -> None:
    made = analyze(pack(ADD), ADDRESS + offset, Rules.KPROBE, Mode.KERNEL, b"")
    assert (made.rule, made.errno) == ("arm64.unaligned", "EINVAL")


@pytest.mark.parametrize("size", range(4))
def test_truncated(size: int) -> None:
    made = analyze(pack(ADD)[:size], ADDRESS, Rules.UPROBE, Mode.STRICT, b"")
    assert (made.rule, made.errno) == ("arm64.truncated", "EINVAL")


@pytest.mark.parametrize(
    ("word", "boosted"),
    [
        (ADD, True),
        (0xF9400020, True),  # ldr x0, [x1]
        (0xD503233F, True),  # paciasp
        (0xD503245F, True),  # bti c
        (CAS, True),
        (LDAR, True),
        (0xD53BD040, False),  # mrs x0, tpidr_el0
        (0xD5033BBF, False),  # dmb ish
        (0xD5031000, False),  # wfet x0
        (0xD50B7420, False),  # dc zva, x0
        (NOP, False),
    ],
)
def test_what_may_be_followed_by_a_branch_back(word: int, boosted: bool) -> None:
    for mode in Mode:
        assert plan(word, Rules.KPROBE, mode).boostable == boosted
        assert not plan(word, Rules.UPROBE, mode).boostable


def test_the_scan_of_linux() -> None:
    assert linux_scan(pack(LDXR, ADD))
    assert not linux_scan(pack(LDXR, STXR, ADD))
    assert linux_scan(pack(STXR, LDXR))
    assert linux_scan(pack(LDXR, CLREX, RET))  # it knows neither clrex nor returns
    assert linux_scan(pack(CASPA))  # and takes casp for an exclusive
    assert not linux_scan(pack(LDXR, CASP))
    assert linux_scan(pack(LDXR, STLR, CAS, LDAR))
    assert not linux_scan(pack(LDAR, ADD))
    for distance in (WINDOW - 1, WINDOW):
        assert linux_scan(pack(LDXR, *[ADD] * distance)) == (distance < WINDOW)
    assert linux_scan(b"\xff\xff\xff" + pack(LDXR))  # words are counted from the place


def test_pairs_follow_control_flow() -> None:
    cbz = 0xB4000000 | 1  # cbz x1, .+(imm << 2)
    assert inside_pair(pack(LDXR, ADD))
    assert not inside_pair(pack(LDXR, STXR, ADD))
    assert not inside_pair(pack(LDXR, CLREX))
    assert not inside_pair(pack(LDXR, SVC))
    assert not inside_pair(pack(LDXR, RET))
    assert not inside_pair(pack(LDXR, B_SELF))
    assert not inside_pair(pack(LDXR, B_SELF | 5))  # beyond the place
    assert inside_pair(pack(LDXR, B_SELF | 2, RET))  # to the place
    assert inside_pair(pack(LDXR, cbz | 2 << 5, CLREX))  # around the clrex
    assert not inside_pair(pack(LDXR, cbz | 1 << 5, CLREX))
    assert inside_pair(pack(LDXR, 0x94000010, ADD))  # a call comes back
    assert inside_pair(pack(LDXR, B_SELF | 2, LDXR & ~31 | 3, B_SELF | 1, ADD))
    assert inside_pair(pack(LDXR, B_SELF | 3, LDXR, RET, ADD))  # from the first
    assert not inside_pair(pack(CASPA, LDAR))
    assert not inside_pair(b"")


def test_pairs_by_rules_and_mode() -> None:
    inside, dead = pack(LDXR, ADD), pack(LDXR, RET)
    for word in (ADD, 0x54000041, NOP):
        refused = {
            (rules, mode, before == inside)
            for rules, mode, before in itertools.product(Rules, Mode, (inside, dead))
            if plan(word, rules, mode, before).rule == "arm64.exclusive-pair"
        }
        assert refused == {
            *itertools.product([Rules.KPROBE], Mode, (True, False)),
            (Rules.UPROBE, Mode.STRICT, True),
        }
    made = plan(ADD, Rules.UPROBE, Mode.STRICT, inside)
    assert (made.verdict, made.errno, made.atomic) == (Verdict.REJECTED, "EINVAL", True)
    # What cannot be stepped at all says so first.
    assert plan(SVC, Rules.KPROBE, Mode.KERNEL, inside).rule == "arm64.svc"


def test_flow_never_raises() -> None:
    rng = random.Random(31)
    mixed = [LDXR, STXR, CLREX, RET, ADD, *(word for word in words(37, per_pattern=5))]
    for _ in range(2000):
        before = pack(LDXR, *rng.choices(mixed, k=rng.randrange(40)))[rng.randrange(4) :]
        assert inside_pair(before) in (True, False)
        assert linux_scan(before) in (True, False)


def test_breakpoints() -> None:
    engine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    code = PROBES.kprobe + PROBES.uprobe + PROBES.after + PROBES.nop
    names = [f"{name} {text}".rstrip() for _, _, name, text in engine.disasm_lite(code, 0)]
    assert names == ["brk #4", "brk #5", "brk #6", "nop"]
    assert AARCH64.probes.kprobe_slot == AARCH64.probes.uprobe_slot == 8


def test_jumps_arrive() -> None:
    cpu = BareCpu("aarch64")
    rng = random.Random(41)
    for target in [CODE + 4 * rng.randrange(-(1 << 20), 1 << 20) for _ in range(200)]:
        code = PROBES.jump(CODE, target)
        assert code is not None
        cpu.patch(CODE, code)
        cpu.write_register("pc", CODE)
        cpu.step()
        assert cpu.pc == target
        assert PROBES.target(code, CODE) == target


def test_jumps_beyond_the_reach() -> None:
    reach = 1 << 27
    base = 0xFFFF_F800_0000
    for distance in (-reach, reach - 4):
        code = PROBES.jump(base, base + distance)
        assert code is not None
        assert PROBES.target(code, base) == base + distance
    for distance in (-reach - 4, reach, 1 << 40, 1, 2, 3):
        assert PROBES.jump(base, base + distance) is None
    assert PROBES.jump(base + 2, base + 2) is None
    assert PROBES.jump(base - PROBES.reach + 8, base) is not None


def test_targets() -> None:
    assert PROBES.target(pack(0x54FFFFC0), ADDRESS) == ADDRESS - 8
    assert PROBES.target(pack(0x36100080), ADDRESS) == ADDRESS + 16
    for word in (ADD, RET, 0x10000000):
        assert PROBES.target(pack(word), ADDRESS) is None
    assert PROBES.target(pack(B_SELF)[:3], ADDRESS) is None


def test_lengths_and_landing_pads() -> None:
    assert [PROBES.length(pack(ADD, ADD)[:size]) for size in range(9)] == [0] * 4 + [4] * 5
    for word in (0xD503245F, 0xD503249F, 0xD50324DF, 0xD503233F, 0xD503237F):
        assert PROBES.landing_pad(pack(word, ADD)) == 4
        assert PROBES.landing_pad(pack(word)[:3]) == 0
    for word in (0xD503241F, 0xD503239F, 0xD50323BF, NOP, ADD):  # bti, autiaz, autiasp
        assert PROBES.landing_pad(pack(word)) == 0


def test_register_names() -> None:
    names = {register.name for register in AARCH64.registers}
    assert set(PROBES.fetch_registers.values()) <= names
    assert {*PROBES.arguments, PROBES.retval} <= names
    assert PROBES.fetch_registers["lr"] == "x30"
    assert PROBES.fetch_registers["pstate"] == AARCH64.roles.flags
    assert len(PROBES.fetch_registers) == 31 + 4
