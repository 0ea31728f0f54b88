"""Verdicts: as Linux's masks say, stricter where Linux spoils; and the record's functions."""

import itertools
import random
import struct

import capstone
import pytest
from barecpu import CODE, BareCpu

from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, Verdict
from engine.arch.riscv64 import RISCV64
from engine.arch.riscv64.analyze import analyze
from engine.arch.riscv64.decode import expand
from engine.arch.riscv64.exclusive import WINDOW, inside_pair
from engine.arch.riscv64.probes import PROBES

ADDRESS = 0x400000
ADD, RET, J_SELF = 0x00C58533, 0x00008067, 0x0000006F
LR, SC, AMOADD = 0x1005252F, 0x18B5252F, 0x00B5252F
BNEZ = 0x00051063
C_ADD, C_RET, C_EBREAK = 0x952E, 0x8082, 0x9002
ECALL, EBREAK = 0x00000073, 0x00100073


def pack(*code: int) -> bytes:
    """Instructions: those of 16 bits are told by their two lowest bits."""
    return b"".join(struct.pack("<I" if word & 3 == 3 else "<H", word) for word in code)


def plan(word: int, rules: Rules, mode: Mode, before: bytes = b"") -> InsnPlan:
    return analyze(pack(word), ADDRESS, rules, mode, before)


def linux(word: int) -> Verdict:
    """What Linux 6.18 says, from the masks of its asm/insn.h, for both kinds of probes."""

    def among(*pairs: tuple[int, int]) -> bool:
        return any(word & mask == value for mask, value in pairs)

    if among((0x7F, 0x73), (0x7F, 0x0F)) or word == C_EBREAK:
        return Verdict.REJECTED
    simulated = among(
        (0xE003, 0xA001),  # c.j
        (0xF07F, 0x8002),  # c.jr
        (0xF07F, 0x9002),  # c.jalr
        (0xE003, 0xC001),  # c.beqz
        (0xE003, 0xE001),  # c.bnez
        (0x7F, 0x6F),
        (0x707F, 0x67),
        (0x7F, 0x17),
        (0x7F, 0x63),
    )
    return Verdict.EMULATED if simulated else Verdict.XOL


def words(seed: int, count: int) -> list[int]:
    rng = random.Random(seed)
    opcodes = [0x73, 0x0F, 0x6F, 0x67, 0x17, 0x63, 0x2F, 0x03, 0x33, 0x53]
    full = [rng.getrandbits(32) & ~0x7F | rng.choice(opcodes) for _ in range(count)]
    full += [word & ~0x7000 for word in full]
    wild = [rng.getrandbits(32) | 3 for _ in range(count)]
    return [*full, *wild, *(half for half in range(1 << 16) if half & 3 != 3)]


@pytest.mark.parametrize("rules", Rules)
def test_kernel_mode_follows_the_masks_of_linux(rules: Rules) -> None:
    seen = set()
    for word in words(23, 3000):
        made = plan(word, rules, Mode.KERNEL)
        seen.add(made.verdict)
        verdict = linux(word)
        if verdict is Verdict.EMULATED and made.verdict is Verdict.REJECTED:
            assert made.rule == "riscv.undefined"
            # It has no registers or conditions that could be simulated: Linux would come back
            # to the breakpoint for ever.
            assert word == 0x8002 or word & 0x7F == 0x63
            continue
        assert made.verdict is verdict, hex(word)
        assert made.raw == pack(word)
        assert made.reason
        assert made.rule.startswith("riscv.")
        assert not made.proven
        assert (made.errno != "") == (verdict is Verdict.REJECTED)
        assert (made.operation is not None) == (verdict is Verdict.EMULATED)
        stepped = verdict is Verdict.XOL
        assert made.copy == (made.raw if stepped else b"")
        assert made.fixups == ((Fixup.IP,) if stepped else ())
        assert not made.boostable or (stepped and rules is Rules.KPROBE)
        if verdict is not Verdict.REJECTED:
            short = (b"\x02\x90", b"\xff\xff")
            assert made.bits == (short if len(made.raw) == 2 else None)
            assert made.base == made.address
    assert len(seen) == 3


@pytest.mark.parametrize("rules", Rules)
def test_strict_refuses_all_that_the_kernel_refuses(rules: Rules) -> None:
    stricter = set()
    for word in words(29, 1500):
        kernel, strict = (plan(word, rules, mode) for mode in (Mode.KERNEL, Mode.STRICT))
        if strict.verdict is Verdict.REJECTED:
            assert strict.errno == kernel.errno or kernel.verdict is Verdict.XOL
            if kernel.verdict is Verdict.XOL:
                stricter.add(strict.rule)
                assert not kernel.boostable
                assert "although" in kernel.reason
        else:
            assert strict.verdict is kernel.verdict
    assert stricter == {"riscv.exclusive", "riscv.undefined"}


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        (ECALL, "riscv.system"),
        (EBREAK, "riscv.system"),
        (C_EBREAK, "riscv.system"),
        (0x00302573, "riscv.system"),  # frcsr a0
        (0x30200073, "riscv.system"),  # mret
        (0x0FF0000F, "riscv.fence"),
        (0x0000100F, "riscv.fence"),  # fence.i
        (0x0045200F, "riscv.fence"),  # cbo.zero
        (0x00002063, "riscv.undefined"),  # a branch without a condition
        (0x8002, "riscv.undefined"),  # c.jr zero
    ],
    ids=lambda value: value if isinstance(value, str) else hex(value),
)
def test_refusals(word: int, rule: str) -> None:
    for rules, mode in itertools.product(Rules, Mode):
        made = plan(word, rules, mode)
        own = word == C_EBREAK and rules is Rules.UPROBE
        errno = "ENOTSUPP" if own else "EINVAL"
        assert (made.verdict, made.rule, made.errno) == (Verdict.REJECTED, rule, errno)
        assert not made.atomic


def test_odd_places() -> None:
    for rules, errno in ((Rules.KPROBE, "EILSEQ"), (Rules.UPROBE, "EINVAL")):
        made = analyze(pack(ADD), ADDRESS + 1, rules, Mode.KERNEL, b"")
        assert (made.rule, made.errno) == ("riscv.unaligned", errno)
    assert analyze(pack(ADD), ADDRESS + 2, Rules.KPROBE, Mode.STRICT, b"").verdict is Verdict.XOL


@pytest.mark.parametrize("size", range(4))
def test_truncated(size: int) -> None:
    made = analyze(pack(ADD)[:size], ADDRESS, Rules.UPROBE, Mode.STRICT, b"")
    assert (made.rule, made.errno) == ("riscv.truncated", "EINVAL")


def test_what_may_be_followed_by_a_jump_back() -> None:
    for word in (ADD, C_ADD, AMOADD, 0x02A5F553, 0x00053503):
        for mode in Mode:
            assert plan(word, Rules.KPROBE, mode).boostable
            assert not plan(word, Rules.UPROBE, mode).boostable


def test_atomic_pairs_follow_control_flow() -> None:
    to = {size: BNEZ | size // 2 << 8 for size in (4, 8, 12)}  # bnez a0, .+size
    assert inside_pair(pack(LR, ADD))
    assert inside_pair(pack(LR, C_ADD))
    assert not inside_pair(pack(LR, SC))
    assert not inside_pair(pack(LR, SC, ADD))
    assert not inside_pair(pack(LR, ECALL))
    assert not inside_pair(pack(LR, RET))
    assert not inside_pair(pack(LR, C_RET))
    assert not inside_pair(pack(LR, J_SELF))
    assert inside_pair(pack(LR, 0x0080006F, C_RET, C_RET))  # j over both
    assert not inside_pair(pack(LR, 0x0100006F, ADD))  # beyond the place
    assert inside_pair(pack(LR, to[8], RET))  # around the return
    assert inside_pair(pack(LR, 0x008000EF, ADD))  # a call comes back
    assert not inside_pair(pack(AMOADD, ADD))
    assert not inside_pair(b"")
    far = pack(LR, *[ADD] * (WINDOW // 4))
    assert not inside_pair(far)
    assert inside_pair(far[:WINDOW])
    # Bytes that look like one, in the middle of instructions.
    assert not inside_pair(b"\x13\x00" + pack(LR)[:2] + pack(C_ADD))


def test_pairs_by_mode() -> None:
    inside, dead = pack(LR, ADD), pack(LR, RET)
    for word in (ADD, C_ADD, 0x00B50463, expand(0xA801)):
        refused = {
            (rules, mode, before == inside)
            for rules, mode, before in itertools.product(Rules, Mode, (inside, dead))
            if plan(word, rules, mode, before).rule == "riscv.exclusive-pair"
        }
        assert refused == {(rules, Mode.STRICT, True) for rules in Rules}
    made = plan(ADD, Rules.UPROBE, Mode.STRICT, inside)
    assert (made.verdict, made.errno, made.atomic) == (Verdict.REJECTED, "EINVAL", True)


def test_flow_never_raises() -> None:
    rng = random.Random(31)
    mixed = [LR, SC, ECALL, RET, ADD, C_ADD, *rng.sample(words(37, 50), 60)]
    for _ in range(2000):
        before = pack(LR, *rng.choices(mixed, k=rng.randrange(40)))[rng.randrange(4) :]
        assert inside_pair(before) in (True, False)


def test_breakpoints() -> None:
    engine = capstone.Cs(
        capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC
    )
    code = PROBES.kprobe + PROBES.uprobe + PROBES.after + PROBES.nop
    names = [name for _, _, name, _ in engine.disasm_lite(code, 0)]
    assert names == ["ebreak", "c.ebreak", "ebreak", "c.nop"]
    assert RISCV64.probes.kprobe_slot == RISCV64.probes.uprobe_slot == 8


def test_jumps_arrive() -> None:
    cpu = BareCpu("riscv64")
    rng = random.Random(41)
    for target in [CODE + 2 * rng.randrange(-(1 << 19), 1 << 19) for _ in range(200)]:
        code = PROBES.jump(CODE, target)
        assert code is not None
        cpu.patch(CODE, code)
        cpu.write_register("pc", CODE)
        cpu.step()
        assert cpu.pc == target
        assert PROBES.target(code, CODE) == target


def test_jumps_beyond_the_reach() -> None:
    reach, base = 1 << 20, 0x3F_F800_0000
    for distance in (-reach, reach - 2):
        code = PROBES.jump(base, base + distance)
        assert code is not None
        assert PROBES.target(code, base) == base + distance
    for distance in (-reach - 2, reach, 1 << 40, 1, 3):
        assert PROBES.jump(base, base + distance) is None
    assert PROBES.jump(base + 1, base + 1) is None
    assert PROBES.jump(base - PROBES.reach + 8, base) is not None


def test_targets_and_returns() -> None:
    assert PROBES.target(pack(0xFE000CE3), ADDRESS) == ADDRESS - 8  # beqz zero
    assert PROBES.target(pack(0xA801), ADDRESS) == ADDRESS + 16
    assert PROBES.target(pack(0xC501), ADDRESS) == ADDRESS + 8
    for word in (ADD, RET, C_RET, 0x00001517):
        assert PROBES.target(pack(word), ADDRESS) is None
    assert PROBES.target(pack(J_SELF)[:3], ADDRESS) is None
    assert PROBES.returns(pack(ADD, RET)) == (4,)
    assert PROBES.returns(pack(ADD, C_RET)) == (2,)
    assert PROBES.returns(pack(0x8282)) == (2,)  # jr t0
    for word in (ADD, C_ADD, 0x8502, 0x000500E7):
        assert PROBES.returns(pack(ADD, word)) == ()


def test_register_names() -> None:
    names = {register.name for register in RISCV64.registers}
    assert set(PROBES.fetch_registers.values()) <= names
    assert {*PROBES.arguments, PROBES.retval} <= names
    assert PROBES.fetch_registers["epc"] == "pc"
    assert "zero" not in PROBES.fetch_registers
    assert len(PROBES.fetch_registers) == 32
