"""Probes where pages end, where code is written by the program itself, and where pages go."""

import pytest
from probekit import CODE, EXECUTE, READ, WRITE, ProbeGuest

from engine.arch.plan import Rules
from engine.cpu.base import Stop
from engine.cpu.ram import PAGE
from engine.probes.kprobe import Kprobe, ProbeFlags

EDGE = CODE + PAGE
ALL = READ | WRITE | EXECUTE
CDQ = b"\x99"
MOV = b"\x48\x89\xd8"  # mov rax, rbx
BREAK = b"\xcc"


def counting(address: int, rules: Rules = Rules.KPROBE) -> Kprobe:
    return Kprobe(addr=address, record=lambda thread: None, rules=rules)


def fetched(stop: Stop) -> tuple[int, str | None]:
    """Where an instruction fetch failed."""
    return stop.address, stop.access


def drop_page(guest: ProbeGuest, page: int) -> None:
    guest.memory.unmap(page, PAGE)
    guest.overlay.unmapped(page, PAGE)


# -- where pages end ----------------------------------------------------------------------


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("mapped", [True, False])
def test_the_last_byte_of_a_page(rules: Rules, mapped: bool) -> None:
    ends = []
    for probed in (False, True):
        guest = ProbeGuest("x86_64")
        guest.load(CDQ + BREAK, EDGE - 1)
        if not mapped:
            drop_page(guest, EDGE)
        probe = counting(EDGE - 1, rules)
        if probed:
            guest.manager.register(probe)
            assert guest.memory.read(EDGE - 1, 1) == BREAK
        guest.cpu.count_blocks(True)
        guest["rax"], guest["rdx"] = 1 << 31, 0
        if mapped:
            assert guest.run_to_trap() == EDGE
        else:
            assert fetched(guest.run()) == (EDGE, "execute")
            assert guest.pc == EDGE
        assert guest["rdx"] == 0xFFFFFFFF
        assert probe.hits == int(probed)
        ends.append((guest.registers(), guest.cpu.blocks()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("before", [1, 2])
def test_an_instruction_on_two_pages(rules: Rules, before: int) -> None:
    guest = ProbeGuest("x86_64")
    guest.load(MOV + BREAK, EDGE - before)
    probe = counting(EDGE - before, rules)
    guest.manager.register(probe)
    guest["rbx"] = 7

    assert guest.run_to_trap() == EDGE - before + len(MOV)
    assert (guest["rax"], probe.hits) == (7, 1)
    assert guest.overlay.original(EDGE - before, 4) == MOV + BREAK
    guest.manager.unregister(probe)
    assert guest.memory.read(EDGE - before, 4) == MOV + BREAK


@pytest.mark.parametrize("rules", list(Rules))
def test_the_second_page_goes_and_the_probe_with_it(rules: Rules) -> None:
    """Half of an instruction faults where its other half was, with or without a probe."""
    guest = ProbeGuest("x86_64")
    guest.load(MOV + BREAK, EDGE - 1)
    probe = counting(EDGE - 1, rules)
    guest.manager.register(probe)
    guest.run_to_trap()
    drop_page(guest, EDGE)

    assert ProbeFlags.GONE in probe.flags
    assert guest.memory.read(EDGE - 1, 1) == MOV[:1]
    assert len(guest.notices) == 1
    assert f"{EDGE - 1:#x}" in guest.notices[0]
    guest.pc = EDGE - 1
    assert fetched(guest.run()) == (EDGE, "execute")
    assert (guest.pc, probe.hits) == (EDGE - 1, 1)


def test_a_page_that_goes_and_comes_back() -> None:
    guest = ProbeGuest("x86_64")
    guest.load(MOV + BREAK, EDGE)
    near = counting(EDGE)
    other = counting(CODE + 8)
    guest.memory.poke(CODE + 8, CDQ + BREAK)
    guest.manager.register_all([near, other])
    drop_page(guest, EDGE)
    guest.memory.map(EDGE, PAGE, READ | EXECUTE, name="code")
    guest.overlay.mapped(EDGE, PAGE)
    guest.load(MOV + BREAK, EDGE)

    guest["rbx"] = 5
    assert guest.run_to_trap() == EDGE + 3
    assert (guest["rax"], near.hits) == (5, 0)
    assert (ProbeFlags.GONE in near.flags, ProbeFlags.GONE in other.flags) == (True, False)
    again = counting(EDGE)
    guest.manager.register(again)
    guest.pc = EDGE
    guest.run_to_trap()
    guest.pc = CODE + 8
    guest.run_to_trap()
    assert (again.hits, other.hits) == (1, 1)


# -- code that the program writes ---------------------------------------------------------


def writer(at: int, target: int, value: bytes, call: int) -> bytes:
    """Code that stores four bytes at `target`, calls `call`, and stops.

    mov rcx, target; mov dword [rcx], value; call; int3
    """
    head = b"\x48\xb9" + target.to_bytes(8, "little") + b"\xc7\x01" + value
    distance = call - (at + len(head) + 5)
    return head + b"\xe8" + distance.to_bytes(4, "little", signed=True) + BREAK


@pytest.mark.parametrize("same_page", [False, True])
@pytest.mark.parametrize(
    ("new", "hits", "result", "notice"),
    [
        (MOV + b"\xc3", 2, 7, ""),  # the same again
        (b"\x48\x89\xc8\xc3", 2, None, "armed again on the new instruction"),  # mov rax, rcx
        (b"\x0f\x0b\x90\xc3", 1, None, "dropped"),  # ud2
    ],
)
def test_the_program_rewrites_a_probed_instruction(
    same_page: bool, new: bytes, hits: int, result: int | None, notice: str
) -> None:
    function = CODE + 0x100 if same_page else EDGE
    guest = ProbeGuest("x86_64", perms=ALL)
    guest.memory.poke(function, MOV + b"\xc3")
    guest.load(writer(CODE, function, new, function))
    probe = counting(function)
    guest.manager.register(probe)
    guest["rbx"] = 7
    sp = guest.sp
    guest.memory.poke(sp - 8, CODE.to_bytes(8, "little"))
    guest.pc, guest.sp = function, sp - 8  # a first call, which returns to the writer
    stop = guest.run()

    assert guest.overlay.original(function, 4) == new
    assert probe.hits == hits
    assert [notice in text for text in guest.notices] == [True] * bool(notice)
    if new.startswith(b"\x0f\x0b"):
        assert (stop.trap.name, guest.pc) == ("ILLEGAL", function)
    else:
        assert stop.trap.name == "BREAKPOINT"
        assert guest["rax"] == (function if result is None else result)


@pytest.mark.parametrize("same_page", [False, True])
def test_the_program_writes_beside_a_probe(same_page: bool) -> None:
    """Its own store and its own text are as they would be; the probe stays."""
    function = CODE + 0x100 if same_page else EDGE
    guest = ProbeGuest("x86_64", perms=ALL)
    guest.memory.poke(function, MOV + b"\xc3")
    beside = function + 0x20
    probe = counting(function)
    guest.load(writer(CODE, beside, b"ABCD", function))
    guest.manager.register(probe)
    guest["rbx"] = 9
    for hits in (1, 2):
        guest.pc = CODE
        assert guest.run().trap.name == "BREAKPOINT"
        assert (guest["rax"], probe.hits) == (9, hits)
    assert guest.memory.read(beside, 4) == b"ABCD"
    assert guest.notices == []
    assert guest.memory.read(function, 1) == BREAK
