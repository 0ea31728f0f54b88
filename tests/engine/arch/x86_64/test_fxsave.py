"""The image made of registers against the one that the emulator's FXSAVE and FXRSTOR know."""

import random
import struct

from barecpu import CODE, DATA, BareCpu

from engine.arch.x86_64 import fxsave
from engine.cpu.base import StopKind

REGISTERS = (
    *("fctrl", "fstat", "ftag", "mxcsr"),
    *(f"st{number}" for number in range(8)),
    *(f"xmm{number}" for number in range(16)),
)


def random_image(rng: random.Random) -> bytes:
    """Any values; instruction and operand pointers are not kept, MXCSR has no reserved bits."""
    head = struct.pack(
        "<HHBx", rng.getrandbits(16) | 0x3F, rng.getrandbits(16), rng.getrandbits(8)
    )
    head += struct.pack("<18xII", rng.getrandbits(16) | 0x1F80, fxsave.MXCSR_MASK)
    values = b"".join(rng.randbytes(10).ljust(16, b"\0") for _ in range(8))
    return (head + values + rng.randbytes(256)).ljust(fxsave.SIZE, b"\0")


def test_images_are_those_of_the_processor() -> None:
    # fxsave64 [rdi]; syscall; fxrstor64 [rdi]; syscall
    cpu = BareCpu("x86_64", bytes.fromhex("480fae07 0f05 480fae0f 0f05"))
    cpu.write_register("rdi", DATA)
    rng = random.Random(20)
    for image in (fxsave.FRESH, *(random_image(rng) for _ in range(60))):
        cpu.write(DATA, image)
        cpu.write_register("rip", CODE + 6)
        assert cpu.run().kind is StopKind.SYSCALL
        loaded = cpu.read_registers(REGISTERS[:4]), [cpu.read_register(n) for n in REGISTERS[4:]]

        fxsave.load(cpu, bytes(fxsave.SIZE))
        fxsave.load(cpu, image)
        assert loaded == (
            cpu.read_registers(REGISTERS[:4]),
            [cpu.read_register(n) for n in REGISTERS[4:]],
        )

        cpu.write(DATA, bytes(fxsave.SIZE))
        cpu.write_register("rip", CODE)
        assert cpu.run().kind is StopKind.SYSCALL
        assert fxsave.save(cpu) == cpu.read(DATA, fxsave.SIZE)


def test_rounding_is_as_loaded() -> None:
    # fld1; fidiv dword [rdi]; fstp qword [rdi+8]; movss xmm0, [rdi+16]; divss xmm0, [rdi+20];
    # movss [rdi+24], xmm0; syscall
    code = "d9e8 da37 dd5f08 f30f104710 f30f5e4714 f30f114718 0f05"
    results = []
    for control, mxcsr in ((0x37F, 0x1F80), (0xB7F, 0x3F80)):  # to nearest; up and down
        cpu = BareCpu("x86_64", bytes.fromhex(code))
        cpu.write_register("rdi", DATA)
        cpu.write(DATA, struct.pack("<iiQff4x", 3, 0, 0, 1.0, 3.0))
        fxsave.load(cpu, struct.pack("<H22xI", control, mxcsr).ljust(fxsave.SIZE, b"\0"))
        assert cpu.run().kind is StopKind.SYSCALL
        results.append(struct.unpack("<Q8xI", cpu.read(DATA + 8, 20)))
    (double, single), (double_up, single_down) = results
    assert (double, double_up - double) == (0x3FD5555555555555, 1)
    assert (single, single_down) == (0x3EAAAAAB, 0x3EAAAAAA)
