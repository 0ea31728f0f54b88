"""Each integer, MMX and SSE form of x86-64 that Capstone knows, and random cases of it.

A form is an opcode with its mandatory prefix, operand sizes, and a register or memory operand.
Each also has a form with a lock prefix, which most refuse. VEX, EVEX and x87 have tests of their
own (`vexforms`, `snippets.x87`).
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import capstone
from snippets import (
    CODE,
    DATA,
    END,
    FLAGS,
    SLOT,
    STATE,
    UNDEFINED_FLAGS,
    Case,
    fx_image,
    general,
    vector,
)

from engine.arch.x86_64.decode import decode

_ENGINE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_ENGINE.detail = True
_LITE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_PREFIXES = (b"", b"\x66", b"\xf3", b"\xf2")
_IS_PREFIX = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3" + bytes(range(0x40, 0x50)))
_OTHERS = frozenset((0x0F, 0x62, 0xC4, 0xC5, 0xD5, *range(0xD8, 0xE0)))
"""First bytes of longer maps, of VEX, EVEX and REX2, and of x87."""
_RBX, _RSP, _RBP, _RSI, _RDI = 3, 4, 5, 6, 7
_TRAP_AND_ALIGNMENT = 1 << 8 | 1 << 18

_UNDEFINED = {
    **UNDEFINED_FLAGS,
    **dict.fromkeys(("shld", "shrd"), 0x810),
    **dict.fromkeys(("bsf", "bsr"), FLAGS & ~0x40),
    **dict.fromkeys(("lzcnt", "tzcnt"), FLAGS & ~0x41),
}

# -- what is left out -------------------------------------------------------------------------

_LEFT = {
    **dict.fromkeys(("syscall", "sysenter", "sysexit", "sysexitq"), "calls of the system"),
    **dict.fromkeys(("cpuid", "xgetbv", "rdpkru", "wrpkru"), "the processor's own model"),
    **dict.fromkeys(("rdtsc", "rdtscp", "rdrand", "rdseed", "rdpid"), "time and chance"),
    **dict.fromkeys(("rdfsbase", "rdgsbase", "wrfsbase", "wrgsbase"), "thread storage"),
    **dict.fromkeys(("swapgs", "lfs", "lgs"), "thread storage"),
    **dict.fromkeys(("sgdt", "sidt", "smsw", "sldt", "str"), "the host has UMIP, or not"),
    **dict.fromkeys(("xbegin", "xabort", "xtest", "xend"), "transactions"),
    **dict.fromkeys(("vmcall", "vmmcall"), "the host is a virtual machine, or not"),
    **dict.fromkeys(("in", "out", "insb", "insd", "insw", "outsb", "outsd", "outsw"), "ports"),
}
"""Mnemonics whose results are the machine's: reasons."""


@dataclass(frozen=True)
class Form:
    """One form of an instruction.

    Attributes:
        front: prefixes that belong to it, without REX.
        wide: REX.W belongs to it.
        opcode: with its escape bytes.
        modrm: the whole byte; None if there is none, -1 if it is free but for `digit`.
        digit: the middle field of ModRM; -1 if it is a free register.
        memory: the operand is in memory.
        mnemonic: Capstone's, without prefixes.
        name: mnemonic and operands, for reports.
        locked: it has a lock prefix.
    """

    front: bytes
    wide: bool
    opcode: bytes
    modrm: int | None
    digit: int
    memory: bool
    mnemonic: str
    name: str
    locked: bool = field(default=False)


def _known(code: bytes) -> Any:
    return next(_ENGINE.disasm(code + bytes(12), 0), None)


def _shape(insn: Any) -> tuple[object, ...]:
    return insn.mnemonic, tuple((operand.type, operand.size) for operand in insn.operands)


def _sizes(insn: Any) -> str:
    kinds = {1: "r", 2: "i", 3: "m"}
    return ", ".join(f"{kinds.get(each.type, '?')}{8 * each.size}" for each in insn.operands)


def _opcodes() -> Iterator[bytes]:
    for opcode in range(256):
        if opcode not in _IS_PREFIX and opcode not in _OTHERS:
            yield bytes((opcode,))
    for escape in (b"\x0f", b"\x0f\x38", b"\x0f\x3a"):
        for opcode in range(256):
            if escape != b"\x0f" or opcode not in (0x0F, 0x38, 0x3A):
                yield escape + bytes((opcode,))


@cache
def forms() -> tuple[Form, ...]:
    """All forms, those with a lock prefix last."""
    found: dict[tuple[object, ...], Form] = {}
    for opcode in _opcodes():
        for front in _PREFIXES:
            for wide in (False, True):
                code = front + b"\x48" * wide + opcode
                plain = _known(code + b"\xc0")
                other = _known(code + b"\x06")
                first = plain or other
                if first is None:
                    first = next(
                        filter(None, (_known(code + bytes((m,))) for m in range(256))), None
                    )
                if first is None:
                    continue
                decoded = decode(code + b"\xc0" + bytes(12)) or decode(code + b"\x06" + bytes(12))
                if decoded is not None and decoded.modrm < 0:
                    _add(found, front, wide, opcode, None, -1, first)
                    continue
                _add_groups(found, front, wide, opcode)
    plain_forms = [form for form in found.values() if form.mnemonic not in _LEFT]
    locked = [
        Form(**{**vars(form), "locked": True, "name": f"lock {form.name}"})
        for form in plain_forms
        if b"\xf3" not in form.front and b"\xf2" not in form.front
    ]
    return (*plain_forms, *locked)


def left() -> dict[str, str]:
    """Mnemonics that are left out, with the reason."""
    return dict(_LEFT)


def _add(
    found: dict[tuple[object, ...], Form],
    front: bytes,
    wide: bool,
    opcode: bytes,
    modrm: int | None,
    digit: int,
    insn: Any,
) -> None:
    memory = any(operand.type == capstone.x86.X86_OP_MEM for operand in insn.operands)
    in_memory = modrm is not None and memory and (modrm == -1)
    key = opcode, digit, modrm, _shape(insn)
    mnemonic = insn.mnemonic.split()[-1]
    name = f"{insn.mnemonic} {_sizes(insn)} ({front.hex()}{'.W ' if wide else ' '}{opcode.hex()}"
    name += f" /{digit})" if digit >= 0 else f" {modrm:02x})" if modrm not in (None, -1) else ")"
    found.setdefault(key, Form(front, wide, opcode, modrm, digit, in_memory, mnemonic, name))


def _add_groups(
    found: dict[tuple[object, ...], Form], front: bytes, wide: bool, opcode: bytes
) -> None:
    """Those with ModRM: with a free register in the middle, or each by its digit."""
    code = front + b"\x48" * wide + opcode
    for low, memory in ((0x06, True), (0xC1, False)):
        insns = [_known(code + bytes((digit << 3 | low,))) for digit in range(8)]
        shapes = {_shape(insn) if insn is not None else None for insn in insns}
        if opcode in (b"\x0f\x01", b"\x0f\xae") and not memory:
            for modrm in range(0xC0, 0x100):
                insn = _known(code + bytes((modrm,)))
                if insn is not None:
                    _add(found, front, wide, opcode, modrm, -1, insn)
            continue
        names = {shape[0] for shape in shapes if shape is not None}
        same = len(names) == 1 and None not in shapes
        if same:
            _add(found, front, wide, opcode, -1, -1, insns[0])
            continue
        for digit, insn in enumerate(insns):
            if insn is not None:
                _add(found, front, wide, opcode, -1, digit, insn)


# -- cases --------------------------------------------------------------------------------------

_SOURCES: dict[int, tuple[list[bytes], list[bytes]]] = {}
_ALIGNED_STACK = DATA + 128
_HALVES = ("movups", "movupd", "movdqu", "lddqu")
_STRINGS = (
    *("movsb", "movsw", "movsd", "movsq", "stosb", "stosw", "stosd", "stosq", "lodsb", "lodsw"),
    *("lodsd", "lodsq", "scasb", "scasw", "scasd", "scasq", "cmpsb", "cmpsw", "cmpsd", "cmpsq"),
)
_BIT_TESTS = (b"\x0f\xa3", b"\x0f\xab", b"\x0f\xb3", b"\x0f\xbb")
_NEAR_JUMPS = (
    *(bytes((0x70 + at,)) for at in range(16)),
    b"\xe0",
    b"\xe1",
    b"\xe2",
    b"\xe3",
    b"\xeb",
)
_FAR_DISTANCES = (*(bytes((0x0F, 0x80 + at)) for at in range(16)), b"\xe8", b"\xe9")
_MOVES_OF_ADDRESS = (b"\xa0", b"\xa1", b"\xa2", b"\xa3")
_FREE_PREFIXES = (b"\x2e", b"\x36", b"\x3e", b"\x26")


class Cases:
    """Random cases of forms, all by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._images = [
            fx_image(self._random, unmasked=self._random.choice((0, 0, 0.4))) for _ in range(500)
        ]
        self._data = [
            b"".join(vector(self._random) for _ in range(4)) + self._random.randbytes(192)
            for _ in range(500)
        ]

    def of(self, form: Form, number: int) -> Case | None:
        """The case of that number in its file; None where none was found for the form."""
        for _ in range(40):
            found = self._case(form, number)
            if found is not None:
                return found
        return None

    def _case(self, form: Form, number: int) -> Case | None:
        random_ = self._random
        gpr = general(random_)
        gpr[_RSP] = _ALIGNED_STACK + 8 * random_.randrange(-4, 4)
        gpr[_RSI], gpr[_RDI], gpr[_RBX] = DATA, DATA + 128, DATA
        data = bytearray(random_.choice(self._data))
        fx = bytearray(random_.choice(self._images))
        flags = random_.getrandbits(12) & FLAGS
        built = self._code(form, number, gpr)
        if built is None:
            return None
        code, at = built
        text = _text(code)
        if text is None:
            if not form.locked:
                return None
            text = form.name
        flags |= self._prepare(form, code, number, gpr, data, fx, at)
        mnemonic = form.mnemonic
        return Case(
            code,
            text if not form.locked else f"lock {text}",
            gpr,
            flags,
            bytes(data),
            bytes(fx),
            undefined=_UNDEFINED.get(mnemonic, 0),
            mmx=" mm" in text or mnemonic in ("emms", "maskmovq"),
            halves=mnemonic in _HALVES,
        )

    def _code(self, form: Form, number: int, gpr: list[int]) -> tuple[bytes, int] | None:
        """Bytes of one instruction of the form, and where its operand in memory is."""
        random_ = self._random
        front = b"\xf0" * form.locked + form.front
        if random_.random() < 0.05:
            front = random_.choice(_FREE_PREFIXES) + front
        rex = 0x48 if form.wide else 0x40 if random_.random() < 0.1 else 0
        at = self._somewhere()
        opcode = form.opcode
        tail = b""
        if form.modrm is not None:
            if form.modrm >= 0:
                tail = bytes((form.modrm,))
            else:
                reg = form.digit if form.digit >= 0 else random_.randrange(8)
                if random_.random() < 0.3 and form.digit < 0:
                    rex |= 0x44
                if form.memory:
                    more, tail, at, narrow = self._memory(number, gpr, at)
                    rex |= more
                    if narrow:
                        front = b"\x67" + front
                    tail = bytes((tail[0] | reg << 3,)) + tail[1:]
                else:
                    rm = random_.randrange(8)
                    if random_.random() < 0.3:
                        rex |= 0x41
                    if random_.random() < 0.1 and form.digit < 0:
                        rm = reg
                        rex = rex | 0x45 if rex & 5 else rex
                    tail = bytes((0xC0 | reg << 3 | rm,))
        elif random_.random() < 0.3 and opcode[0] != 0x90:
            rex |= 0x41  # of the registers that opcodes have
        behind = random_.choice((random_.randbytes(8), bytes((random_.randrange(70),)) + bytes(7)))
        if opcode in _MOVES_OF_ADDRESS:
            behind = struct.pack("<Q", at)
        if opcode == b"\xc8" and random_.random() < 0.7:  # a stack that there is, and some levels
            level = random_.randrange(10) + 32 * random_.randrange(8)
            behind = struct.pack("<HB", random_.randrange(40), level) + bytes(5)
        whole = front + (bytes((rex,)) if rex else b"") + opcode + tail + behind
        size = _size(whole, form)
        if not size or size > 15:
            return None
        if form.memory and tail[0] & 0xC7 == 5:  # relative to what is behind it
            place = whole.index(tail, len(front)) + 1
            distance = at - (CODE + SLOT * number) - size
            whole = whole[:place] + struct.pack("<i", distance) + whole[place + 4 :]
        whole = whole[:size]
        back = size + 7
        if opcode in _NEAR_JUMPS:
            whole = whole[:-1] + bytes((random_.randrange(back, SLOT) - size,))
        elif opcode in _FAR_DISTANCES and size >= 5:
            whole = whole[:-4] + struct.pack("<i", random_.randrange(back, SLOT) - size)
        return (whole, at) if _fits(whole, form) else None

    def _somewhere(self) -> int:
        kind = self._random.random()
        if kind < 0.55:
            return DATA
        if kind < 0.8:
            return DATA + self._random.randrange(32)
        return END - self._random.randrange(1, 40)

    def _memory(self, number: int, gpr: list[int], at: int) -> tuple[int, bytes, int, bool]:
        """REX bits, ModRM and what follows, the address, and whether addresses have 32 bits."""
        random_ = self._random
        kind = random_.randrange(10)
        narrow = random_.random() < 0.05
        if kind < 4:  # [rsi]
            gpr[_RSI] = at
            return 0, b"\x06", at, narrow
        if kind == 4:
            return 0, b"\x05" + bytes(4), at, False
        base = random_.randrange(16)
        rex = base >> 3
        if kind < 8:  # [base + distance]
            distance = random_.randrange(-128, 128)
            gpr[base] = at - distance
            sib = b"\x24" if base & 7 == 4 else b""
            if kind == 7:
                tail = bytes((0x80 | base & 7,)) + sib + struct.pack("<i", distance)
            else:
                tail = bytes((0x40 | base & 7,)) + sib + struct.pack("<b", distance)
            return rex, tail, at, narrow
        index = random_.choice([each for each in range(16) if each not in (4, base)])
        scale = random_.randrange(4)
        gpr[index] = random_.randrange(-8, 60)
        gpr[base] = at - (gpr[index] << scale) - 3
        gpr[index] &= (1 << 64) - 1
        if narrow:
            gpr[index] &= (1 << 32) - 1
        sib = bytes((scale << 6 | (index & 7) << 3 | base & 7,))
        return rex | (index >> 3) << 1, b"\x44" + sib + b"\x03", at, narrow

    def _prepare(
        self,
        form: Form,
        code: bytes,
        number: int,
        gpr: list[int],
        data: bytearray,
        fx: bytearray,
        at: int,
    ) -> int:
        """Registers and data that make sense to the instruction; more flags."""
        random_ = self._random
        name, opcode = form.mnemonic, form.opcode
        landing = CODE + SLOT * number + SLOT - 1
        more = 0
        if opcode in _BIT_TESTS and form.memory and random_.random() < 0.8:
            reg = decode(code + bytes(12))
            if reg is not None:
                each = reg.reg | (reg.rex & 4) << 1
                if not DATA - 4096 < gpr[each] < END:
                    gpr[each] = random_.randrange(-64, 256) & (1 << 64) - 1
        if name in _STRINGS:
            gpr[_RSI], gpr[1] = DATA + 64, random_.randrange(8)
            if random_.random() < 0.2:
                gpr[random_.choice((_RSI, _RDI))] = END - random_.randrange(1, 17)
            more = random_.choice((0, 0x400))
            if random_.random() < 0.5:
                data[32:96] = data[96:160]
        if name in (
            "ret",
            "retf",
            "retfq",
            "leave",
            "pop",
            "call",
            "jmp",
            "iretq",
            "iretd",
            "iret",
        ):
            if random_.random() < 0.6:
                self._aim(gpr[_RSP], data, landing)
            if random_.random() < 0.6 and form.memory:
                self._aim(at, data, landing)
        if name in ("call", "jmp") and not form.memory and form.modrm is not None:
            gpr[(code[-1] & 7) | (8 if any(b & 0xF1 == 0x41 for b in code[:-2]) else 0)] = landing
        if name == "leave" or name == "enter":
            gpr[_RBP] = DATA + 8 * random_.randrange(4, 20)
        if name.startswith("cmpxchg") and random_.random() < 0.6:
            place = at - DATA if DATA <= at < DATA + 240 else 0
            gpr[0], gpr[2] = struct.unpack_from("<2Q", data, place)
        if name.startswith(("maskmov", "xlat")):
            gpr[_RDI] = at
            gpr[0] &= 0x3F
        if name == "xlatb":
            gpr[_RBX] = DATA
            gpr[0] = random_.randrange(128)
        if "popf" in name or "iret" in name:
            for place in range(0, 248, 8):
                (word,) = struct.unpack_from("<Q", data, place)
                struct.pack_into("<Q", data, place, word & ~_TRAP_AND_ALIGNMENT)
            for place in range(0, 256, 4):
                (word,) = struct.unpack_from("<I", data, place)
                struct.pack_into("<I", data, place, word & ~_TRAP_AND_ALIGNMENT)
        if name in ("loop", "loope", "loopne", "jrcxz", "jecxz"):
            gpr[1] = random_.choice((0, 1, 2, 1 << 32, gpr[1]))
        if name in ("div", "idiv"):
            gpr[2] = random_.choice((0, 0, (1 << 64) - 1, random_.randrange(64), gpr[2]))
        if name.startswith("pcmpestr"):
            gpr[0], gpr[2] = (
                random_.choice((random_.randrange(20), -random_.randrange(20) & (1 << 64) - 1))
                for _ in range(2)
            )
        if name.startswith("dpp"):  # an unmasked exception ends it between its steps
            (mxcsr,) = struct.unpack_from("<I", fx, 24)
            struct.pack_into("<I", fx, 24, mxcsr | 0x1F80)
        if name == "ldmxcsr" and DATA <= at < DATA + 252 and random_.random() < 0.8:
            struct.pack_into("<I", data, at - DATA, random_.getrandbits(16))
        if name.startswith("fxrstor"):
            struct.pack_into("<I", data, 24 + (at - DATA) % 16, random_.getrandbits(16))
        return more

    def _aim(self, address: int, data: bytearray, target: int) -> None:
        place = address - DATA
        if 0 <= place <= 240:
            struct.pack_into("<Q", data, place, target)


def _size(whole: bytes, form: Form) -> int:
    if not form.locked:
        return next((size for _, size, _, _ in _LITE.disasm_lite(whole, 0)), 0)
    place = whole.index(b"\xf0")
    rest = whole[:place] + whole[place + 1 :]
    size = next((size for _, size, _, _ in _LITE.disasm_lite(rest, 0)), 0)
    return size + 1 if size else 0


def _text(code: bytes) -> str | None:
    if b"\xf0" in code[:3]:
        place = code.index(b"\xf0")
        code = code[:place] + code[place + 1 :]
    for _, _, mnemonic, operands in _LITE.disasm_lite(code, 0):
        return f"{mnemonic} {operands}"
    return None


_SEGMENTS_KEPT = ("fs", "gs")


def _fits(code: bytes, form: Form) -> bool:
    """Tell whether it is still the form, and nothing that cannot be compared."""
    text = _text(code)
    if text is None:
        return False
    mnemonic, _, operands = text.partition(" ")
    words = operands.split(", ")
    if mnemonic in ("rep", "repe", "repne", "bnd", "notrack", "lock", "data16"):
        mnemonic = words[0].split()[0]
    if mnemonic != form.mnemonic and operands.split(" ")[0] != form.mnemonic:
        return False
    if words[0] in _SEGMENTS_KEPT:  # thread storage is lost
        return False
    if form.opcode == b"\xcd" and (code[-1] == 0x80 or (code[0] != 0xCD and not form.locked)):
        return False
    return not (form.opcode == b"\x90" and b"\xf3" in code)


# -- what is known to differ ----------------------------------------------------------------------

_NOT_OFFERED = frozenset(
    (
        *("clwb", "clflushopt", "adcx", "adox", "xsavec", "xsavec64", "xsaves", "xsaves64"),
        *("xrstors", "xrstors64", "invpcid", "tpause", "umwait", "umonitor", "incsspd"),
        *("incsspq", "movntss", "movntsd", "extrq", "insertq", "wrssd", "wrssq", "wrussd"),
        *("wrussq", "sha1msg1", "sha1msg2", "sha1nexte", "sha1rnds4", "sha256msg1", "sha256msg2"),
        *("sha256rnds2", "movdiri", "movdir64b", "gf2p8mulb", "gf2p8affineqb", "ptwrite"),
        *("gf2p8affineinvqb", "enqcmd", "enqcmds", "cldemote", "serialize", "movbe", "lzcnt"),
        *("encls", "enclu", "enclv", "pconfig", "wbnoinvd", "clzero", "monitorx", "mwaitx"),
    )
)
"""CPUID does not offer these, so that they are no instructions here; the host may have them."""
_BRANCHES = frozenset(("ret", "call", "jmp", "retf", "retfq", "iretd", "iretq", "iret"))
_FAULT, _ILLEGAL = 11, 4
_STORES, _LOADS = ("fxsave", "xsave"), ("fxrstor", "xrstor")
_UNWRITTEN = frozenset((6, 7, *(at for at in range(42, 160) if at % 16 >= 10)))
"""Bytes of an image that a processor makes zero and the emulator leaves: FOP, and behind each
register of x87."""
_MXCSR_BYTES = frozenset(range(24, 32))
"""Bytes of MXCSR, which xsave writes where it is asked for AVX alone (not offered here)."""
_EXCEPTIONS = 0x8080
"""Bits of x87's status that tell of an exception that is not masked: a processor makes them."""


def known(form: Form, found: dict[str, tuple[object, object]]) -> str:
    """Name the limit that a difference (ours, the host's) is by; empty for any other."""
    ours = found.get("signal", (0, 0))[0]
    name = form.mnemonic
    if ours == _ILLEGAL and name in _NOT_OFFERED:
        return "not offered"
    # `at` is told within a case's place: both may fault at what looks like the same.
    elsewhere = "at" in found or (name.startswith(("ret", "call")) and set(found) == {"gpr4"})
    if name in _BRANCHES and elsewhere and "signal" not in found:
        return "faults of branches to no address"
    if name == "lss" and set(found) == {"address"}:
        return "selectors of far pointers, read first"
    if name == "enter" and found.get("signal", (0, 0))[1] == _FAULT:
        # The last thing that is looked at is whether the new stack can be written.
        made, refused = found.get("gpr4", (0, 0))[0], found.get("address", (0, 0))[1]
        return "enter below the stack" if made == refused else ""
    general = all(key.startswith("gpr") for key in found)
    if name in ("cmpxchg", "bsf", "bsr") and general and all(map(_upper_alone, found.values())):
        return f"upper halves behind {name}"
    if name.startswith(_STORES) and "signal" not in found:
        return _of_store(name, found)
    if name.startswith(_LOADS):
        return _of_load(found)
    if name == "movbe" and form.front == b"\x66" and form.wide and set(found) == {"data"}:
        return "movbe of both sizes that faults"
    if name.startswith("maskmov") and set(found) <= {"data", "mxcsr", "address"}:
        return "maskmov that faults"
    repeats = form.front[-1:] in (b"\xf2", b"\xf3") and len(form.opcode) == 1
    if repeats and name.startswith(("cmps", "scas")):
        # A processor puts back what they were in front of it (SDM, REP), the emulator cannot.
        return "flags of a repeated comparison that faults" if set(found) == {"flags"} else ""
    selector = form.opcode[-1:] == b"\x8e" if name == "mov" else form.opcode[0] == 0x0F
    if name in ("mov", "pop") and selector and found.get("signal") == (_FAULT, 0):
        return "segment registers"
    return ""


def _of_store(name: str, found: dict[str, tuple[object, object]]) -> str:
    """The limit by which stored images of x87 differ, empty for anything else."""
    if set(found) <= {"address", "data"} and "address" in found:
        return "address of a fault in an image"
    if set(found) != {"data"}:
        return ""
    ours, theirs = (bytes.fromhex(str(each)) for each in found["data"])
    differing = [
        at for at, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other
    ]
    step = 64 if name.startswith("xsave") else 16
    for base in range(0, 256, step):
        left = {at - base for at in differing}
        zeros = not any(theirs[at] for at in differing if at - base in _UNWRITTEN)
        if left <= _UNWRITTEN and zeros:
            return "reserved bytes of an image"
        if step == 64 and left <= _UNWRITTEN | _MXCSR_BYTES and zeros:
            return "MXCSR of AVX alone in an image"
    return ""


def _of_load(found: dict[str, tuple[object, object]]) -> str:
    """The limit by which x87 differs behind a loaded image, empty for anything else."""
    if "address" in found and "signal" not in found:
        return "image that faults in its middle"
    if found.get("signal") == (0, _FAULT):
        reserved = int(str(found.get("mxcsr", ("0", "0"))[0]), 16) >> 16
        return "reserved bits of MXCSR in an image" if reserved else ""
    if not set(found) <= {"control", "status"}:
        return ""
    control, status = (
        [int(str(each), 16) for each in found.get(key, ("0", "0"))]
        for key in ("control", "status")
    )
    kept = "control" not in found or control[0] & 0x1F3F | 0x40 == control[1]
    same = (status[0] ^ status[1]) & ~_EXCEPTIONS == 0
    return "reserved bits of x87 in an image" if kept and same else ""


def _upper_alone(pair: tuple[object, object]) -> bool:
    one, other = (int(str(each), 16) for each in pair)
    return (one ^ other) & 0xFFFFFFFF == 0 and one >> 32 == 0


__all__ = ["STATE", "Cases", "Form", "forms", "known", "left"]
