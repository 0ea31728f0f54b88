"""IA-64 guests whose main runs again and again, and a loop that speculates on data."""

from ia64kit import CODE, DATA, BareIa64, Guest, code, trace

from engine.arch.ia64.bundle import Bundle, unpack
from engine.arch.ia64.decode import decode_at
from engine.arch.ia64.encode import assemble
from engine.cpu.ram import EXECUTE, PAGE, READ

_FAR = 1 << 20
"""Distance of the page with the loop from the guest's start."""


def again(elf: bytes, times: int) -> Guest:
    """A guest whose start calls a loop that calls main so many times with what it was given."""
    start = next(trace("a_rp"))
    entry = int.from_bytes(elf[24:32], "little")
    start["ip"] = f"{entry:x}"
    guest = Guest(elf, start)
    at = entry
    while (insn := decode_at(guest.cpu.read(at, 16), 2)) is None or insn.format != "B3":
        at += 16
    main, loop = insn.target(at), (entry + _FAR) & -PAGE
    assert main is not None
    guest.add(loop, READ | EXECUTE, _loop(loop, main, times))
    words = list(unpack(guest.cpu.read(at, 16)).slots)
    words[2] = assemble(f"br.call.sptk.many b0={loop:#x}", "B", at)[0]
    template = unpack(guest.cpu.read(at, 16)).template
    guest.cpu.write(at, Bundle(template, (words[0], words[1], words[2])).pack())
    return guest


def _loop(at: int, main: int, times: int) -> bytes:
    head = code(
        "M alloc r34=ar.pfs,10,7,0",
        "I mov r35=b0",
        "M adds r36=0,r1",
        f"X movl r37={times:#x}",
        address=at,
    )
    top = at + len(head)
    body = code(
        "M adds r39=0,r32",
        "M adds r40=0,r33",
        "M adds r1=0,r36",
        address=top,
    )
    body += code(f"B br.call.sptk.few b0={main:#x}", address=top + len(body))
    body += code("M adds r37=-1,r37", "M cmp.eq p7,p6=0,r37", address=top + len(body))
    body += code(f"B (p6) br.cond.sptk.few {top:#x}", address=top + len(body))
    return head + body + code("I mov.i ar.pfs=r34", "I mov b0=r35", "B br.ret.sptk.many b0")


SPECULATING = (
    "M ld8.a r14=[r32]",
    "M adds r15=1,r15",
    "M st8 [r33]=r15",
    "M ld8.c.nc r14=[r32]",
    "M add r16=r14,r16",
    "M ld8.a r17=[r34]",
    "M st8 [r34]=r16",
    "M ld8.c.clr r17=[r34]",
    "M xor r18=r17,r18",
)
"""Advanced loads, stores, checks: of two stores one never overlaps, the other one always."""


def speculating(times: int, jit_after: int) -> BareIa64:
    """A core in front of that loop; ends in a break."""
    body = code(*SPECULATING)
    loop = code(f"B br.cloop.sptk.few {CODE:#x}", address=CODE + len(body))
    cpu = BareIa64(body + loop + code("M break.m 0x0"), jit_after=jit_after)
    cpu.write_register("cfm", 8)
    for register, offset in (("r32", 0), ("r33", 256), ("r34", 512)):
        cpu.write_register(register, DATA + offset)
    cpu.write_register("lc", times - 1)
    return cpu
