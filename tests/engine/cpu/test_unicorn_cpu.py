"""The CPU: stops, faults, screening, clock, user level."""

import struct
import threading
from collections.abc import Callable, Sequence

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.arch.riscv64.decode import FLOAT_NAMES
from engine.cpu import native
from engine.cpu.base import Stop, StopKind
from engine.cpu.pagetable import Region
from engine.cpu.ram import PAGE
from engine.errors import GuestFaultError

X86, ARM = "x86_64", "aarch64"


@pytest.fixture(params=["native", "portable"], autouse=True)
def callbacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")


def x86(text: str) -> BareCpu:
    return BareCpu(X86, bytes.fromhex(text))


def arm(*words: int) -> BareCpu:
    return BareCpu(ARM, struct.pack(f"<{len(words)}I", *words))


SVC = 0xD4000001


@pytest.mark.parametrize(
    ("cpu", "after"),
    [(lambda: x86("b82a000000 0f05 90"), CODE + 7), (lambda: arm(0xD2800540, SVC), CODE + 8)],
    ids=[X86, ARM],
)
def test_system_call_stops_behind_it(cpu: Callable[[], BareCpu], after: int) -> None:
    machine = cpu()
    assert machine.run() == Stop(StopKind.SYSCALL)
    assert machine.pc == after


@pytest.mark.parametrize("offset", [0, 1, 0x123, PAGE - 1])
def test_fault_has_the_exact_address(offset: int) -> None:
    machine = x86("8801 0f05")  # mov [rcx], al
    machine.write_register("rcx", DATA - PAGE + offset)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (
        StopKind.FAULT,
        DATA - PAGE + offset,
        "write",
    )
    assert machine.pc == CODE
    # And the page can be given afterwards: the same instruction then succeeds.
    machine.regions.insert(1, Region(DATA - PAGE, DATA, machine._take(1), 3))
    machine.page_table.load(machine.regions)
    machine.flush_tlb()
    machine.write_register("rax", 0x5A)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read(DATA - PAGE + offset, 1) == b"\x5a"


def test_fault_leaves_flags_and_memory() -> None:
    # sub ecx, 1 (sets ZF); mov [rax], rcx; syscall
    machine = x86("83e901 488908 0f05")
    machine.write_register("rcx", 1)
    machine.write_register("rax", 0x10)
    before = machine.read(DATA, PAGE)
    stop = machine.run()
    assert (stop.access, stop.address) == ("write", 0x10)
    assert machine.read_register("eflags") & 0x40
    assert machine.read(DATA, PAGE) == before


def test_execute_faults() -> None:
    machine = x86("ffe0")
    machine.write_register("rax", DATA)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, DATA, "execute")
    assert machine.pc == DATA


def test_read_only_pages_refuse_stores_after_a_read() -> None:
    machine = x86("488b08 488908 0f05")  # mov rcx, [rax]; mov [rax], rcx
    machine.write_register("rax", CODE + 0x100)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, CODE + 0x100, "write")


def test_read_modify_write_of_a_read_only_page() -> None:
    machine = x86("f0830001 0f05")  # lock add dword [rax], 1
    machine.write_register("rax", CODE + 0x234)
    stop = machine.run()
    assert (stop.address, stop.access, machine.pc) == (CODE + 0x234, "write", CODE)


def test_store_across_pages_that_faults_in_the_second_changes_nothing() -> None:
    machine = x86("488908 0f05")
    machine.write_register("rax", DATA + 4 * PAGE - 3)
    machine.write_register("rcx", 2**64 - 1)
    stop = machine.run()
    # The processor would name the first byte of the second page; see unicorn_faults.
    assert DATA + 4 * PAGE <= stop.address < DATA + 4 * PAGE + 8
    assert stop.access == "write"
    assert machine.read(DATA + 4 * PAGE - 3, 3) == bytes(3)


PRIVILEGED = {
    "hlt": "f4",
    "cli": "fa",
    "mov cr0": "0f22c0",
    "wrmsr": "0f30",
    "lgdt": "0f0110",
    "in": "ec",
    "out": "ee",
    "iretq": "48cf",
    "swapgs": "0f01f8",
    "invd": "0f08",
}


@pytest.mark.parametrize("code", PRIVILEGED.values(), ids=PRIVILEGED)
def test_privileged_instructions_trap_again_and_again(code: str) -> None:
    machine = x86(code)
    machine.write_register("rax", DATA)
    for _ in range(4):
        machine.write_register("rip", CODE)
        stop = machine.run()
        assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.PRIVILEGED)


ARM_PRIVILEGED = {
    "mrs sctlr": 0xD5381000,
    "msr ttbr0": 0xD5182000,
    "tlbi": 0xD508871F,
    "eret": 0xD69F03E0,
    "hvc": 0xD4000002,
    "smc": 0xD4000003,
    "msr daifset": 0xD50342DF,
    "sve": 0x2518E3E0,
    "mrs cntvct": 0xD53BE040,
}


@pytest.mark.parametrize("word", ARM_PRIVILEGED.values(), ids=ARM_PRIVILEGED)
def test_arm_privileged_instructions_trap(word: int) -> None:
    machine = arm(word)
    for _ in range(3):
        machine.write_register("pc", CODE)
        stop = machine.run()
        assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)
        assert machine.pc == CODE


def test_divide_errors_never_become_double_faults() -> None:
    machine = x86("31c9 f7f1")
    for _ in range(4):
        machine.write_register("rip", CODE)
        stop = machine.run()
        assert (stop.trap, stop.number, machine.pc) == (TrapKind.DIVIDE, 0, CODE + 2)


LATER = {
    "vpaddd xmm0, xmm1, xmm2": ("c5f1fec2", "AVX (VEX)"),
    "vzeroupper": ("c5f877", "AVX (VEX)"),
    "andn eax, ecx, edx": ("c4e270f2c2", "BMI"),
    "lzcnt eax, ecx": ("f30fbdc1", "lzcnt"),
    "kmovw k2, eax": ("c5f892d0", "no instruction that has a VEX prefix"),
    "vaddps zmm0": ("62f1744858c2", "AVX-512 (EVEX)"),
}


@pytest.mark.parametrize(("code", "kind"), LATER.values(), ids=LATER)
def test_later_processors_are_refused_in_words_before_they_run(
    monkeypatch: pytest.MonkeyPatch, code: str, kind: str
) -> None:
    monkeypatch.setattr(native, "lends", lambda: False)  # the host lends nothing
    machine = x86("b801000000" + code + "0f05")
    stop = machine.run()
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)
    assert kind in stop.detail
    assert machine.pc == CODE + 5
    assert machine.read_register("rax") == 1


def test_screening_reaches_every_kind_of_block() -> None:
    """Blocks behind jumps, calls, returns, indirect jumps and system calls are all seen."""
    avx = "62f1744858c2"
    for code, at in (
        ("eb02 9090" + avx, 4),
        ("e802000000 9090" + avx, 7),
        ("b8 0a004000 ffe0 909090" + avx, 10),
        ("68 08004000 c3 9090" + avx, 8),
        ("31c0 7402 9090" + avx, 6),
    ):
        machine = x86(code)
        stop = machine.run()
        assert (stop.trap, machine.pc) == (TrapKind.ILLEGAL, CODE + at)
    machine = x86("0f05" + avx)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.run().trap is TrapKind.ILLEGAL


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("c5fcfac1", "no instruction"),  # vpsubd without its prefix
    ],
)
def test_what_no_processor_has_is_refused_in_words(code: str, said: str) -> None:
    stop = x86(code + "0f05").run()
    assert stop.trap is TrapKind.ILLEGAL
    assert said in stop.detail


@pytest.mark.parametrize(
    ("code", "count", "left", "flags"),
    [
        ("0401 e100 0f05", 1, 0, 0x10),  # add al, 1; loope: the count is used up
        ("04ff e0fc 0f05", 5, 3, 0x55),  # add al, -1; loopne, till al is 0
        ("38c0 e1fc 0f05", 5, 0, 0x44),  # cmp al, al; loope
        ("04ff 67e100 0f05", (7 << 32) + 1, 0, 0x11),  # with ecx
    ],
)
def test_loops_that_look_at_zf_keep_the_flags(
    code: str, count: int, left: int, flags: int
) -> None:
    machine = x86(code)
    machine.write_register("rax", 2 if left else 0x0F)
    machine.write_register("rcx", count)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("rcx") == left
    assert machine.read_register("eflags") & 0x51 == flags & 0x51


@pytest.mark.parametrize("rex", ["40", "48", "4f"])
def test_flags_and_ah_with_rex(rex: str) -> None:
    machine = x86(f"38c0 {rex}9f 0f05")  # cmp al, al; lahf
    machine.write_register("rax", 0x1234_0000)
    machine.run()
    assert machine.read_register("rax") == 0x1234_4600
    machine = x86(f"38c0 {rex}9e 0f05")  # cmp al, al; sahf
    machine.write_register("rax", 0x8100)
    machine.run()
    assert machine.read_register("eflags") & 0x8D5 == 0x81


@pytest.mark.parametrize("code", ["480fc70e", "f0480fc70e"])
@pytest.mark.parametrize("equal", [True, False])
def test_exchanges_keep_the_flags_before_them(code: str, equal: bool) -> None:
    machine = x86(f"4d85c0 0408 {code} 0f05")  # test r8, r8; add al, 8; cmpxchg16b [rsi]
    words = (0x10 if equal else 0x11, 2)
    machine.write(DATA, struct.pack("<2Q", *words))
    for name, value in {"rsi": DATA, "rax": 8, "rdx": 2, "rbx": 3, "rcx": 4}.items():
        machine.write_register(name, value)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("eflags") & 0x8D5 == (0x50 if equal else 0x10)
    assert struct.unpack("<2Q", machine.read(DATA, 16)) == ((3, 4) if equal else words)
    assert machine.read_register("rax") == (0x10 if equal else 0x11)


def test_an_exchange_always_writes_and_is_aligned() -> None:
    machine = x86("0408 480fc70e 0f05")
    machine.write_register("rsi", CODE)
    stop = machine.run()
    assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, CODE, "write")
    machine = x86("0408 480fc70e 0f05")
    machine.write_register("rsi", DATA + 8)
    assert machine.run() == Stop(StopKind.TRAP, TrapKind.PRIVILEGED, 13)


@pytest.mark.parametrize(
    ("code", "low"),
    [
        ("660f2a0b", struct.pack("<2d", 16777217, -3)),  # cvtpi2pd xmm1, [rbx]
        ("0f2a0b", struct.pack("<2f", 16777216, -3) + b"\xff" * 8),  # cvtpi2ps xmm1, [rbx]
    ],
)
def test_integers_in_memory_are_no_mmx(code: str, low: bytes) -> None:
    machine = x86(f"d9e8 {code} 0f05")
    machine.write(DATA, struct.pack("<2i", 16777217, -3))
    machine.write_register("rbx", DATA)
    machine.write_register("xmm1", (1 << 128) - 1)
    machine.run()
    assert (machine.read_register("fstat"), machine.read_register("ftag")) == (0x3800, 0x3FFF)
    assert machine.read_register("xmm1") == int.from_bytes(low, "little")
    assert machine.read_register("mxcsr") == (0x1F80 if len(code) > 6 else 0x1FA0)


@pytest.mark.parametrize("code", ["6e", "f36e", "6f", "ee", "e780", "ec", "66ed"])
def test_ports_change_nothing(code: str) -> None:
    """Neither does what stands behind in the block."""
    machine = x86(f"3c05 {code} 83c001 488907 0f05")  # cmp al, 5; ...; add eax, 1; mov [rdi], rax
    machine.write(DATA, b"as it was")
    before = {"rsi": DATA, "rdi": DATA, "rcx": 3, "rax": 3}
    for name, value in before.items():
        machine.write_register(name, value)
    stop = machine.run()
    assert (stop.kind, stop.trap, stop.address) == (
        *(StopKind.TRAP, TrapKind.PRIVILEGED, CODE + 2),
    )
    assert machine.pc == CODE + 2
    assert {name: machine.read_register(name) for name in before} == before
    assert machine.read_register("eflags") & 0x8D5 == 0x91
    assert machine.read(DATA, 9) == b"as it was"
    machine.write_register("rip", CODE + 2 + len(bytes.fromhex(code)))
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read(DATA, 1) == b"\x04"


def test_screen_follows_rewritten_code() -> None:
    machine = x86("62f1744858c2 0f05")
    assert machine.run().trap is TrapKind.ILLEGAL
    machine.patch(CODE, bytes.fromhex("ffc090909090"))
    machine.write_register("rip", CODE)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("rax") == 1


def test_sticky_sse_flags_are_seen_and_forgotten() -> None:
    # divsd xmm0, [rax+8]; stmxcsr [rbx]; ldmxcsr [rdx]; stmxcsr [rbx+4]; syscall
    machine = x86("f20f1000 f20f5e4008 0fae1b 0fae12 0fae5b04 0f05")
    machine.write(DATA, struct.pack("<dd", 1.0, 0.0))
    machine.write(DATA + 0x200, struct.pack("<I", 0x1F80))
    for name, value in (("rax", DATA), ("rbx", DATA + 0x100), ("rdx", DATA + 0x200)):
        machine.write_register(name, value)
    assert machine.run().kind is StopKind.SYSCALL
    assert struct.unpack("<II", machine.read(DATA + 0x100, 8)) == (0x1F84, 0x1F80)


def test_random_numbers_are_the_seeded_ones() -> None:
    machine = x86("480fc7f0 660fc7f9 0f05")  # rdrand rax; rdseed cx
    machine.write_register("rcx", 0xAABBCCDD)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("rax") == 0x0807060504030201
    assert machine.read_register("rcx") == 0xAABB0201
    assert machine.read_register("eflags") & 1


def test_arm_random_numbers_are_the_seeded_ones() -> None:
    machine = arm(0xD53B2403, SVC)  # mrs x3, rndr
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("x3") == 0x0807060504030201


def test_pointer_authentication_signs_and_checks() -> None:
    machine = arm(0xD503233F, 0xD503201F, SVC, 0xD50323BF, SVC)  # paciasp ... autiasp
    machine.write_register("x30", 0x401234)
    assert machine.run().kind is StopKind.SYSCALL
    signed = machine.read_register("x30")
    assert signed != 0x401234
    assert signed & ((1 << 48) - 1) == 0x401234
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("x30") == 0x401234


LOOP = "b9e8030000 83c001 ffc9 75f9 0f05"  # 1000 passes: the first block holds the first pass


def test_clock_ticks_at_each_jump_taken() -> None:
    machine = x86(LOOP)
    machine.count_blocks(True)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("rax") == 1000
    assert machine.blocks() == 999


def test_straight_code_takes_no_time_however_the_emulator_cuts_it() -> None:
    machine = x86("48ffc0" * 3000 + "ebfe" + "0f05")  # inc rax ...; jmp to itself
    machine.count_blocks(True)
    assert machine.run(3).kind is StopKind.QUANTUM
    assert machine.blocks() == 3
    assert machine.read_register("rax") == 3000


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_each_repetition_of_a_string_instruction_is_a_tick(count: int) -> None:
    machine = x86("f3aa 0f05")  # rep stosb
    machine.count_blocks(True)
    machine.write_register("rcx", count)
    machine.write_register("rdi", DATA)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.blocks() == count


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_inside_the_machinery_only_repetitions_are_time(count: int) -> None:
    machine = x86("ebfe 90 f3aa eb00 90 eb00 0f05")
    machine.exempt((CODE + 3, 100))
    machine.count_blocks(True)
    machine.write_register("rcx", count)
    machine.write_register("rdi", DATA)
    machine.write_register("rip", CODE + 3)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.blocks() == count


@pytest.mark.parametrize("quantum", [1, 7, 100, 999])
def test_quantum_stops_exactly_and_resumes(quantum: int) -> None:
    machine = x86(LOOP)
    stops = 0
    while (stop := machine.run(quantum)).kind is StopKind.QUANTUM:
        stops += 1
        assert machine.blocks() == stops * quantum
    assert stop.kind is StopKind.SYSCALL
    assert machine.read_register("rax") == 1000
    assert machine.blocks() == 999


def test_clock_can_be_switched_off() -> None:
    machine = x86(LOOP + LOOP)
    machine.count_blocks(True)
    machine.run()
    counted = machine.blocks()
    machine.count_blocks(False)
    machine.run()
    assert machine.blocks() == counted


def test_halt_before_a_run_is_not_lost() -> None:
    machine = x86("ebfe")
    machine.halt()
    assert machine.run().kind is StopKind.HALTED


def test_halt_from_another_thread_ends_a_loop() -> None:
    machine = x86("ebfe")
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.01):
            machine.halt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        assert machine.run().kind is StopKind.HALTED
    finally:
        done.set()
        thread.join()


def test_steps_execute_one_instruction_each() -> None:
    # inc eax; stmxcsr [rbx] (prepared); rdrand rcx (emulated); inc eax; syscall
    machine = x86("ffc0 0fae1b 480fc7f1 ffc0 0f05")
    machine.write_register("rbx", DATA)
    places = []
    while machine.step() is None:
        places.append(machine.pc - CODE)
    assert places == [2, 5, 9, 11]
    assert machine.read_register("rcx") == 0x0807060504030201


def test_patched_code_is_seen_at_once() -> None:
    machine = x86("b801000000 0f05")
    machine.run()
    machine.patch(CODE + 1, b"\x02")
    machine.write_register("rip", CODE)
    machine.run()
    assert machine.read_register("rax") == 2


def test_saved_registers_come_back() -> None:
    machine = x86("48ffc0 660fefc0 0f05")
    machine.write_register("xmm0", 1 << 100)
    state = machine.save()
    machine.run()
    assert machine.read_register("xmm0") == 0
    machine.restore(state)
    assert machine.read_register("xmm0") == 1 << 100
    assert machine.pc == CODE


@pytest.mark.parametrize("name", [X86, ARM])
def test_all_registers_read_back(name: str) -> None:
    machine = BareCpu(name)
    fixed = {"cs", "ss", "ds", "es", "fs", "gs", "eflags", "mxcsr", "cpsr", "fstat", "ftag"}
    for register in machine.arch.registers:
        if register.name in fixed | {"fctrl", "fpcr", "fpsr"} or register.name.startswith("st"):
            continue
        value = 0x123456789ABCDEF0FEDCBA9876543210 & ((1 << min(register.bits, 47)) - 1)
        machine.write_register(register.name, value)
        assert machine.read_register(register.name) == value
    general = tuple(r.name for r in machine.arch.registers if r.group == "general")
    assert machine.read_registers(general) == tuple(map(machine.read_register, general))


def test_unknown_register() -> None:
    with pytest.raises(KeyError):
        x86("90").read_register("nosuch")


def test_user_level_cannot_be_left_by_writing_flags() -> None:
    machine = x86("90")
    machine.write_register("eflags", 0xFFFFFFFF)
    assert machine.read_register("eflags") & 0x3000 == 0  # IOPL
    assert machine.read_register("cs") == 0x33
    machine = arm(SVC)
    machine.write_register("cpsr", 0xFFFFFFFF)
    assert machine.read_register("cpsr") & 0xF == 0


def test_memory_outside_the_table() -> None:
    machine = x86("90")
    with pytest.raises(GuestFaultError, match="0x500000"):
        machine.read(0x500000, 1)
    with pytest.raises(GuestFaultError):
        machine.write(DATA + 4 * PAGE - 1, b"ab")


def test_touched_pages_count_against_the_budget() -> None:
    # lea rax, [rax+4096]; mov [rax], rax; jmp back
    machine = BareCpu(X86, bytes.fromhex("480500100000 488900 ebf5"), budget=40 * PAGE)
    offset = machine.memory.allocate(1 << 20)
    assert offset is not None
    machine.regions.append(Region(0x10000000, 0x10100000, offset, 3))
    machine.page_table.load(machine.regions)
    machine.flush_tlb()
    machine.write_register("rax", 0x10000000)
    stop = machine.run()
    assert stop.kind is StopKind.OUT_OF_MEMORY
    assert machine.memory.used() <= 40 * PAGE
    assert machine.read_register("rax") > 0x10000000 + 20 * PAGE


@pytest.mark.parametrize(
    ("arch", "names", "size"),
    [
        ("aarch64", [f"v{number}" for number in range(32)], 16),
        ("riscv64", FLOAT_NAMES, 8),
        ("x86_64", ["xmm1", "xmm0"], 16),
    ],
)
def test_registers_as_a_block(arch: str, names: Sequence[str], size: int) -> None:
    cpu = BareCpu(arch)
    data = bytes(number % 251 for number in range(size * len(names)))
    for turned in (data, data[::-1]):
        cpu.write_block(names, size, turned)
        each = [cpu.read_register(name).to_bytes(size, "little") for name in names]
        assert b"".join(each) == turned
        for name, value in zip(names, reversed(each), strict=True):
            cpu.write_register(name, int.from_bytes(value, "little"))
        assert cpu.read_block(names, size) == b"".join(reversed(each))


@pytest.mark.parametrize(
    ("arch", "code", "base", "value"),
    [
        (X86, bytes.fromhex("488b07 0f05"), "rdi", "rax"),  # mov rax, [rdi]; syscall
        (ARM, struct.pack("<2I", 0xF9400001, SVC), "x0", "x1"),  # ldr x1, [x0]
        ("riscv64", struct.pack("<2I", 0x00053583, 0x73), "a0", "a1"),  # ld a1, 0(a0)
    ],
    ids=[X86, ARM, "riscv64"],
)
def test_a_page_is_forgotten_by_itself(arch: str, code: bytes, base: str, value: str) -> None:
    machine = BareCpu(arch, code)
    pages = [DATA, DATA + PAGE, DATA + 2 * PAGE]
    for page in pages:
        machine.write(page + 8, page.to_bytes(8, "little"))

    def load(page: int) -> int:
        machine.write_register(machine.arch.roles.pc, CODE)
        machine.write_register(base, page + 8)
        assert machine.run().kind is StopKind.SYSCALL
        return machine.read_register(value)

    assert [load(page) for page in pages] == pages
    code_region, data = machine.regions
    at = data.physical
    machine.page_table.load(
        [
            code_region,
            Region(DATA, DATA + PAGE, at + PAGE, 3),
            Region(DATA + PAGE, DATA + 4 * PAGE, at, 3),
        ]
    )
    fills = machine.memory.control.fills
    machine.flush_pages(DATA, 2 * PAGE)
    assert [load(page) for page in pages[:2]] == [DATA + PAGE, DATA]
    if machine._flush_page is not None:
        assert machine.memory.control.fills == fills + 2
    machine.flush_pages(DATA, 64 * PAGE)
    assert load(DATA + 2 * PAGE) == DATA + PAGE
