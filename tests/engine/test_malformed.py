"""Damaged ELF files: refused with one clear line, or run as Linux would; never a crash or a hang.

The set is the project's golden one, made anew from two committed guests; random damage is drawn
from a fixed seed.
"""

import os
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from goldenruns import GUESTS
from guestrun import Outcome, run

TINY = (GUESTS / "amd64" / "tiny").read_bytes()
UNWINDING = (GUESTS / "amd64" / "unw-O2").read_bytes()
MEBIBYTES = 500
FIRST, SECOND = 64, 64 + 56  # program headers of tiny

REJECT = "reject"
EITHER = "either"


@dataclass(frozen=True)
class Damage:
    """A damaged file and what must come of it: REJECT, EITHER, or an exit code."""

    name: str
    data: bytes = field(repr=False)
    expect: str | int = EITHER
    says: str = ""


def patched(data: bytes, offset: int, value: bytes) -> bytes:
    return data[:offset] + value + data[offset + len(value) :]


def half(value: int) -> bytes:
    return struct.pack("<H", value)


def quad(value: int) -> bytes:
    return struct.pack("<Q", value & 2**64 - 1)


def truncated() -> Iterator[Damage]:
    for size in (0, 1, 5, 15, 17, 31, 40, 51, 52, 53, 63, 80, 100, 119):
        says = "empty" if not size else "magic" if size < 4 else "header"
        yield Damage(f"trunc-{size}", TINY[:size], REJECT, says)
    for size in (121, 150, 176, 200, 232, 300, 4384, 8704):
        yield Damage(f"trunc-{size}", TINY[:size])
    for size in (3000, 6000, 9000, 17543):
        yield Damage(f"truncdwarf-{size}", UNWINDING[:size])


def headers() -> Iterator[Damage]:
    for offset, values, says in ((0, (0, 126), "not an ELF"), (4, (0, 1, 3), "class|32-bit")):
        for value in values:
            name = f"ident-{offset}-{value}"
            yield Damage(name, patched(TINY, offset, bytes([value])), REJECT, says)
    for value in (0, 2, 255):
        yield Damage(f"ident-5-{value}", patched(TINY, 5, bytes([value])), REJECT)
    for offset, value in ((6, 0), (6, 2), (7, 3)):
        yield Damage(f"ident-{offset}-{value}", patched(TINY, offset, bytes([value])))
    yield Damage("e_type", patched(TINY, 16, half(3)))
    yield Damage("e_version", patched(TINY, 20, half(2)), 33)
    yield Damage("e_entry", patched(TINY, 24, quad(0)), 139)
    for value in (0, 0x2628, -56):
        yield Damage(f"e_phoff {value:#x}", patched(TINY, 32, quad(value)), REJECT)
    for value in (1, -1):
        yield Damage(f"e_shoff {value:#x}", patched(TINY, 40, quad(value)), 33)
    yield Damage("e_ehsize", patched(TINY, 52, half(0xFFFF)))
    yield Damage("e_phentsize", patched(TINY, 54, half(0)), REJECT, "e_phentsize")
    yield Damage("e_phnum", patched(TINY, 56, half(0xFFFE)), REJECT, "65534 program headers")
    yield Damage("e_shentsize", patched(TINY, 58, half(63)), 33)


def first_segment() -> Iterator[Damage]:
    for kind in (2, 3, 0x70000000):
        yield Damage(f"p_type {kind:#x}", patched(TINY, FIRST, struct.pack("<I", kind)))
    for flags in (0, 1, 2, 4):
        yield Damage(f"p_flags {flags}", patched(TINY, FIRST + 4, struct.pack("<I", flags)))
    for value in (1, 0x3240, -1):
        yield Damage(f"p_offset {value:#x}", patched(TINY, FIRST + 8, quad(value)), REJECT)
    yield Damage("p_offset 0x1000", patched(TINY, FIRST + 8, quad(0x1000)))
    for value in (1 << 47, -(1 << 47), -4096):
        yield Damage(f"p_vaddr {value:#x}", patched(TINY, FIRST + 16, quad(value)), REJECT)
    for value in (1 << 30, 1 << 40, 1 << 46, 2**63 - 1):
        yield Damage(f"p_memsz {value:#x}", patched(TINY, FIRST + 40, quad(value)))
    for value in (0, 3, 0x1001, 1 << 40, -1):
        yield Damage(f"p_align {value:#x}", patched(TINY, FIRST + 48, quad(value)), 33)


CODE = bytes.fromhex("bf07000000b8e70000000f05")  # exit_group(7)
CODE_AT = 0x400


def segment(
    kind: int = 1,
    flags: int = 5,
    offset: int = 0,
    vaddr: int = 0x400000,
    filesz: int = CODE_AT + len(CODE),
    memsz: int | None = None,
) -> bytes:
    size = filesz if memsz is None else memsz
    return struct.pack("<II", kind, flags) + b"".join(
        quad(value) for value in (offset, vaddr, vaddr, filesz, size, 0x1000)
    )


def built(*table: bytes, tail: bytes = b"", entry: int = 0x400000 + CODE_AT) -> bytes:
    """A file whose code exits with 7, with this table of program headers."""
    at = 64 if len(table) * 56 + 64 <= CODE_AT else CODE_AT + len(CODE)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, entry, at, 0, 0, 64, 56, len(table), 64, 0, 0
    )
    if at == 64:
        return (head + b"".join(table)).ljust(CODE_AT, b"\0") + CODE + tail
    return head.ljust(CODE_AT, b"\0") + CODE + b"".join(table) + tail


def interpreter(path: bytes) -> bytes:
    size = CODE_AT + len(CODE)
    return built(segment(3, 4, size, 0x400000 + size, len(path)), segment(), tail=path)


def segments() -> Iterator[Damage]:
    yield Damage("seg-ok", built(segment()), 7)
    yield Damage("seg-overlap-same", built(segment(), segment()), 7)
    yield Damage("seg-overlap-zero", built(segment(), segment(flags=6, filesz=16, memsz=4096)))
    yield Damage("seg-unsorted", built(segment(vaddr=0x600000), segment()))
    huge = segment(flags=6, offset=0, vaddr=0x10000000, filesz=0, memsz=1 << 44)
    yield Damage("seg-bss-huge", built(segment(), huge))
    yield Damage("seg-filesz", built(segment(memsz=16)), REJECT, "p_filesz")
    wrap = segment(vaddr=2**64 - 4096, filesz=0, memsz=0x10000)
    yield Damage("seg-wrap", built(segment(), wrap), REJECT, "wraps")
    odd = segment(offset=1, vaddr=0x600000, filesz=16)
    yield Damage("seg-misaligned", built(segment(), odd), REJECT, "differ within the page")
    many = [segment(vaddr=0x1000000 + 0x1000 * index, filesz=16) for index in range(299)]
    yield Damage("seg-many", built(segment(), *many), 7)
    yield Damage("interp-empty", interpreter(b""), REJECT, "PT_INTERP")
    yield Damage("interp-unterminated", interpreter(b"/lib/ld.so"), REJECT, "PT_INTERP")
    yield Damage("interp-long", interpreter(b"/" + b"x" * 5000 + b"\0"), REJECT, "PT_INTERP")
    yield Damage("interp-missing", interpreter(b"/no/such/ld.so\0"), REJECT, "loader")
    yield Damage("interp-self", interpreter(b"./file.elf\0"))
    yield Damage("interp-directory", interpreter(b"/\0"), REJECT, "loader")
    yield Damage("interp-device", interpreter(b"/dev/zero\0"), REJECT)
    yield Damage("stack-exec", built(segment(), segment(0x6474E551, 7, filesz=0)), 7)
    yield Damage("tls-bad", built(segment(), segment(7, 4, 1 << 40, 1 << 40, 64)), 7)
    yield Damage("xnum", patched(built(segment()), 56, half(0xFFFF)), REJECT, "program headers")
    yield Damage("low", built(segment(), segment(vaddr=0, filesz=0, memsz=4096)), REJECT)
    window = 0x7FFFF8000000
    over = segment(vaddr=window, filesz=0, memsz=1 << 20)
    yield Damage("window", built(segment(), over), REJECT, "engine's own windows")


def section(name: str) -> tuple[int, int, int]:
    """Header offset, file offset and size of a section of the bigger guest."""
    shoff = struct.unpack_from("<Q", UNWINDING, 40)[0]
    size, count, names = struct.unpack_from("<HHH", UNWINDING, 58)
    strings = struct.unpack_from("<Q", UNWINDING, shoff + names * size + 24)[0]
    for index in range(count):
        header = shoff + index * size
        start = strings + struct.unpack_from("<I", UNWINDING, header)[0]
        if UNWINDING[start : UNWINDING.index(b"\0", start)] == name.encode():
            offset, length = struct.unpack_from("<QQ", UNWINDING, header + 24)
            return header, offset, length
    raise AssertionError(name)


def debug_sections() -> Iterator[Damage]:
    for name, at, value in (
        *((".eh_frame", 32, 0), (".debug_info", 32, 1), (".debug_str", 32, 0)),
        *((".debug_str", 24, 1 << 63), (".strtab", 24, 0x44C6), (".symtab", 56, 0)),
    ):
        header, _, _ = section(name)
        data = patched(UNWINDING, header + at, quad(value))
        yield Damage(f"{name} {at} {value:#x}", data, 155)
    chance = random.Random(20260101)
    for name in (".eh_frame", ".debug_info", ".debug_line", ".debug_abbrev", ".symtab"):
        _, offset, length = section(name)
        for number in range(4):
            damaged = bytearray(UNWINDING)
            for _ in range(chance.choice((1, 2, 7))):
                place = offset + chance.randrange(length)
                damaged[place] = chance.choice((0, 127, 128, 255, chance.randrange(256)))
            yield Damage(f"flip{name}-{number}", bytes(damaged), 155)
    _, frame, _ = section(".eh_frame")
    for name, at, bad in (
        *(("len-0", 0, b"\0"), ("len-huge", 0, b"\xff\xff\xff\x7f"), ("aug", 10, b"z")),
        *(("self-cie", 28, b"\4"), ("neg-cie", 28, b"\0\xff\xff\xff")),
        *(("remember", 41, b"\n" * 8), ("expr-huge", 41, b"\x0f\xff\xff\xff\xff\x7f")),
        ("expr-loop", 41, b"\x0f\4\x2f\xfd\xff"),
    ):
        yield Damage(f"cfi-{name}", patched(UNWINDING, frame + at, bad), 155)


def others() -> Iterator[Damage]:
    for machine, name in ((3, "EM_386"), (22, "EM_S390"), (8, "EM_MIPS"), (0xFFFF, "65535")):
        yield Damage(f"machine {name}", patched(TINY, 18, half(machine)), REJECT, "supported")
    yield Damage("ff", b"\xff" * 512, REJECT, "not an ELF")
    yield Damage("script", b"#!/nowhere/sh\necho\n", REJECT, "/nowhere/sh")
    yield Damage("script-of-nobody", b"#!\necho\n", REJECT, "script")
    yield Damage("text", b"hello\n", REJECT, "text")
    chance = random.Random(42)
    for number in range(8):
        damaged = bytearray(TINY)
        for _ in range(4):
            damaged[chance.randrange(4, 288)] = chance.randrange(256)
        yield Damage(f"flip-headers-{number}", bytes(damaged))


MAKERS: tuple[Callable[[], Iterator[Damage]], ...] = (
    *(truncated, headers, first_segment, segments, debug_sections, others),
)
ALL = [damage for maker in MAKERS for damage in maker()]


def refused(done: Outcome, file: str, says: str = "") -> None:
    lines = done.err.splitlines()
    assert done.code == 2, done
    assert lines[0].startswith("kprobe-tui: "), lines
    assert f"{file}: " in lines[0], lines
    assert len(lines) == 1 or (len(lines) == 2 and "hint: " in lines[1]), lines
    assert not done.out
    assert any(word in lines[0] for word in says.split("|")), lines


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=damage.name, marks=[pytest.mark.slow] if number % 2 else [])
        for number, damage in enumerate(ALL)
    ],
)
def test_damaged_file(damage: Damage, tmp_path: Path) -> None:
    (tmp_path / "file.elf").write_bytes(damage.data)

    done = run("run", "--timeout", "100", "file.elf", cwd=tmp_path)

    assert done.rss < MEBIBYTES
    assert done.code not in (1, 124, 125), done
    if damage.expect == REJECT:
        refused(done, "file.elf", damage.says)
    elif isinstance(damage.expect, int):
        assert done.code == damage.expect, done
    elif done.code == 2:
        refused(done, "file.elf")


WRONG_KINDS = {
    "directory": "is a directory",
    "fifo": "is no regular file",
    "/dev/null": "is no regular file",
    "/dev/zero": "is no regular file",
    "missing": "No such file or directory",
    "text/below": "Not a directory",
    "circle": "symbolic links",
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_what_is_no_program_is_refused_at_once(name: str, tmp_path: Path) -> None:

    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text").write_text("text\n")
    (tmp_path / "circle").symlink_to("circle")

    done = run("run", name, cwd=tmp_path, deadline=20)

    refused(done, name, WRONG_KINDS[name])


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:

    path = tmp_path / "locked"
    path.write_bytes(TINY)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user reads everything")

    refused(run("run", "locked", cwd=tmp_path), "locked", "Permission denied")
