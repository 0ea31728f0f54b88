"""Effects of instructions on flags and stack against Capstone, over the code of real programs.

Capstone is wrong in places, each named here; where it is right both must agree.
"""

from collections.abc import Iterator
from pathlib import Path

import capstone
import pytest
from capstone import x86

from engine.arch.x86_64.decode import LEGACY, Decoded, decode
from engine.arch.x86_64.effects import (
    ALL,
    FLAG_NAMES,
    RBP,
    RSP,
    flags_read,
    flags_written,
    written_registers,
)
from engine.image import ElfImage

PROGRAMS = ("/bin/ls", "/bin/bash", "/usr/bin/python3")
IMPLICIT = {"push", "pop", "call", "ret", "leave", "enter", "pushfq", "popfq", "pushf", "popf"}
# Read: it forgets what these look at. Written: `test m, r`; a count of zero writes nothing;
# the flags that bit tests leave alone count as undefined; flags behind a call are dead;
# string comparisons may have a count of zero; lzcnt and tzcnt leave the others undefined;
# stores of x87 registers are not marked as such.
FORGETS_READ = {"rcr", "rcl", "adox", "adcx", "lahf", "pushfq", "pushf", "cmc"}
DIFFERS_WRITTEN = {
    *("test", "bt", "bts", "btr", "btc", "shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr"),
    *("shld", "shrd", "call", "syscall", "cmpsb", "cmpsw", "cmpsd", "cmpsq", "scasb", "scasw"),
    *(
        "scasd",
        "scasq",
        "lzcnt",
        "tzcnt",
        "iretd",
        "iretq",
        "cmpps",
        "cmpltps",
        "lar",
        "lsl",
        "fstp",
    ),
}


def instructions() -> Iterator[tuple[bytes, Decoded, "capstone.CsInsn"]]:
    """Distinct instructions of a program here."""
    path = next((path for path in PROGRAMS if Path(path).exists()), None)
    image = ElfImage.open(path) if path else None
    if image is None or image.machine != 62:
        pytest.skip("no x86-64 program here")
    text = image.section(".text")
    assert text is not None
    code = image.section_data(text)[:300_000]
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.detail = True
    seen: set[bytes] = set()
    for insn in engine.disasm(code, text.addr):
        raw = bytes(insn.bytes)
        found = decode(raw)
        if raw not in seen and found is not None and found.size == len(raw):
            seen.add(raw)
            yield raw, found, insn


def capstones(insn: "capstone.CsInsn") -> tuple[int, int]:
    read = written = 0
    for bit, name in FLAG_NAMES:
        if insn.eflags & getattr(x86, f"X86_EFLAGS_TEST_{name}", 0):
            read |= bit
        for what in ("MODIFY", "RESET", "SET", "UNDEFINED"):
            if insn.eflags & getattr(x86, f"X86_EFLAGS_{what}_{name}", 0):
                written |= bit
    return read, written


def test_agrees_with_capstone() -> None:
    count = 0
    for raw, found, insn in instructions():
        word = insn.mnemonic.split()[-1]
        where = f"{raw.hex()} {insn.mnemonic} {insn.op_str}"
        count += 1
        if x86.X86_GRP_FPU not in insn.groups:
            read, written = capstones(insn)
            assert flags_read(found) == read or word in FORGETS_READ, where
            assert flags_written(found, raw) == written or word in DIFFERS_WRITTEN, where
        changed = {insn.reg_name(number) for number in insn.regs_access()[1]}
        if word not in IMPLICIT:
            ours = written_registers(found)
            assert RSP in ours or not changed & {"rsp", "esp", "sp", "spl"}, where
            assert RBP in ours or not changed & {"rbp", "ebp", "bp", "bpl"}, where
    assert count > 1000


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("f3a6", 0, 0),  # repe cmpsb: nothing is compared with a count of zero
        ("d3e0", 0, 0),  # shl eax, cl
        ("c1e000", 0, 0),  # shl eax, 0
        ("d1e0", 0, ALL),  # shl eax, 1
        ("d1d0", 1, 0x21),  # rcl eax, 1
        ("9c", ALL, 0),  # pushf
        ("f5", 1, 1),  # cmc
        ("e8 00000000", 0, ALL),  # call: no flag survives it
    ],
)
def test_what_capstone_gets_wrong(text: str, read: int, written: int) -> None:
    raw = bytes.fromhex(text)
    found = decode(raw)
    assert found is not None
    assert found.encoding == LEGACY
    assert (flags_read(found), flags_written(found, raw)) == (read, written)
