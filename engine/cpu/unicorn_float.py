"""Instructions that Unicorn gets wrong for an x86-64 guest, carried out by a host of that kind.

Unicorn 2.1 computes x87's transcendentals and remainders in double precision, sets none of
x87's exception flags and knows no stack faults; of MXCSR it heeds neither flush-to-zero nor the
masks and does not show the flags. Comparing strings (SSE4.2) it misses some, and horizontal
additions of a register to itself (SSSE3) go wrong. So its functions for these are led to host
code (`unicorn_float_code`) that has the processor do what the guest asks for, with the guest's
control words, and takes over values and flags. It is quicker than Unicorn's own.

An exception that is not masked is #XM for SSE, as on a processor, and #MF at the next x87
instruction. Where an x87 store would have left memory as it was it comes at once: the emulator
stores what it is given. With an underflow that is not masked PE may be set although nothing is
lost, and UE be missing where another number is inexact. What the last x87 instruction and its
operand were (FIP, FDP) is what Unicorn says; MMX instructions do not mark the registers'
exponents; a fcmov that does not move does not see that its operand is missing.

Without executable host memory, on another host, or if Unicorn's structure is not the known one,
nothing changes: `install` says so, and `engine.arch.x86_64.screen` has the slow way.
"""

import ctypes
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from engine.cpu import native
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.unicorn_float_code import ROUTINES
from engine.cpu.unicorn_library import uclib

_LINKS: Final = (
    *("raise_exception_ra", "cpu_ldq_data_ra", "cpu_lduw_data_ra", "cpu_stq_data_ra"),
    *("cpu_stw_data_ra", "cpu_stl_data_ra", "update_fp_status", "update_mxcsr_status"),
)
"""Functions of Unicorn that the routines call, in the order of the words in front of them."""
_DEFAULT_CONTROL: Final = 0x37F
_RET: Final = b"\xc3"

# CPUID leaf 1, ecx: SSE3, SSSE3, SSE4.1, SSE4.2.
_NEEDED: Final = 1 << 0 | 1 << 9 | 1 << 19 | 1 << 20


def _forms(first: int, second: int, before: bytes = b"") -> bytes:
    """One instruction for each of st(0) to st(7), four bytes each with its ret."""
    codes = (before + bytes((first, second + number)) + _RET for number in range(8))
    return b"".join(code.ljust(4, b"\x90") for code in codes)


def _memory(*codes: tuple[int, int]) -> bytes:
    """Instructions, four bytes each with their ret."""
    return b"".join(bytes(code) + _RET + b"\x90" for code in codes)


def _x87() -> Iterator[tuple[str, str, bytes]]:
    """(function of Unicorn, routine, code that it finds at r8); SDM volume 1, chapter 8."""
    for name, field, reverse in (
        *(("fadd", 0, 0xC0), ("fmul", 1, 0xC8), ("fsub", 4, 0xE8), ("fsubr", 5, 0xE0)),
        *(("fdiv", 6, 0xF8), ("fdivr", 7, 0xF0)),
    ):
        operand = 2 + 8 * field  # [rdx]
        light = _forms(0xD8, 0xC0 + 8 * field)
        light += _memory((0xD8, operand), (0xDC, operand), (0xDA, operand))
        yield f"{name}_ST0_FT0", "arith", light
        yield f"{name}_STN_ST0", "upon", light + _forms(0xDC, reverse)
    compared = _memory((0xD8, 0x12), (0xDC, 0x12), (0xDA, 0x12), (0xD9, 0xE4))
    yield "fcom_ST0_FT0", "compare", _forms(0xD8, 0xD0) + compared
    yield "fucom_ST0_FT0", "compare", _forms(0xDD, 0xE0)
    yield "fcomi_ST0_FT0", "flagged", _forms(0xDB, 0xF0)
    yield "fucomi_ST0_FT0", "flagged", _forms(0xDB, 0xE8)
    for name, routine, code in (
        *(("flds", "load", "d902"), ("fldl", "load", "dd02"), ("fildl", "load", "db02")),
        *(("fildll", "load", "df2a"), ("fldt", "fetch", "db2a"), ("fbld", "fetch", "df22")),
        *(("fsts", "store", "d91a"), ("fstl", "store", "dd1a"), ("fist", "store", "df1a")),
        *(("fistl", "store", "db1a"), ("fistll", "store", "df3a"), ("fistt", "store", "df0a")),
        *(("fisttl", "store", "db0a"), ("fisttll", "store", "dd0a"), ("fstt", "put", "db3a")),
        *(("fbst", "put", "df32"), ("fld1", "push", "d9e8"), ("fldl2t", "push", "d9e9")),
        *(("fldl2e", "push", "d9ea"), ("fldpi", "push", "d9eb"), ("fldlg2", "push", "d9ec")),
        *(("fldln2", "push", "d9ed"), ("fldz", "push", "d9ee"), ("fchs", "unary", "d9e0")),
        *(("fabs", "unary", "d9e1"), ("fxam", "whole", "d9e5")),
    ):
        yield f"{name}_ST0", routine, bytes.fromhex(code) + _RET
    for name, routine, second in (
        *(("fsqrt", "unary", 0xFA), ("frndint", "unary", 0xFC), ("f2xm1", "whole", 0xF0)),
        *(("fyl2x", "whole", 0xF1), ("fptan", "whole", 0xF2), ("fpatan", "whole", 0xF3)),
        *(("fxtract", "whole", 0xF4), ("fprem1", "whole", 0xF5), ("fdecstp", "whole", 0xF6)),
        *(("fincstp", "whole", 0xF7), ("fprem", "whole", 0xF8), ("fyl2xp1", "whole", 0xF9)),
        *(("fsincos", "whole", 0xFB), ("fscale", "whole", 0xFD), ("fsin", "whole", 0xFE)),
        ("fcos", "whole", 0xFF),
    ):
        yield name, routine, bytes((0xD9, second)) + _RET
    yield "fpush", "pushing", b""
    yield "fmov_ST0_STN", "copy", _forms(0xD9, 0xC0) + _forms(0xDA, 0xC0, b"\xf9")
    yield "fmov_STN_ST0", "assign", _forms(0xDD, 0xD0)
    yield "fxchg_ST0_STN", "exchange", _forms(0xD9, 0xC8)
    yield "ffree_STN", "freeing", b""
    yield "fldcw", "control", b""
    yield "fwait", "nothing", b""


_ALONE: Final = (
    *("flds_FT0", "fldl_FT0", "fildl_FT0", "fldz_FT0", "fmov_FT0_STN", "fpop", "fnstsw"),
    *("fstenv", "ldmxcsr", "emms"),
)
"""Functions whose routines have their names: no exception can be pending at them."""

# Where an SSE function's operands are, and where its result goes.
_LOADS: Final = bytes.fromhex("0f10060f100a")  # movups xmm0, [rsi]; movups xmm1, [rdx]
_KINDS: Final = {
    "xmm": (_LOADS, "0f1106"),  # movups [rsi], xmm0
    "from": (_LOADS[:3], "0f1106"),
    "flags": (_LOADS, "48898798000000"),  # mov [rdi+cc_src], rax
    "integer": (bytes.fromhex("0f100e"), ""),  # movups xmm1, [rsi]
    "mmx": (_LOADS[3:], "488906"),  # mov [rsi], rax
    # lea rax, [rdi+behind fpregs]; cmp rsi, rax; jb; add rsi, -128: behind 0f 38 and 0f 3a Unicorn
    # takes REX.R for a part of the number of a MMX register, and writes behind the last one;
    # movq mm0, [rsi]; mov [rsi], rax; TOP and the tags as all of MMX leaves them, which it forgets
    "mmxs": (
        bytes.fromhex("488d87f00200004839c672044883c6800f6f06"),
        "488906c7875c0200000000000048c7876402000000000000",
    ),
}
_FROM_MMX: Final = "480f7ec00f77"  # movq rax, mm0; emms
_ALL: Final = (("ps", ""), ("pd", "66"), ("ss", "f3"), ("sd", "f2"))
_COMPARISONS: Final = ("eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord")


def _sse() -> Iterator[tuple[str, str, str]]:
    """(function of Unicorn, kind, instruction on its registers); SDM volume 2."""
    for name, opcode in (
        *(("add", "58"), ("mul", "59"), ("sub", "5c"), ("min", "5d"), ("div", "5e")),
        *(("max", "5f"), ("sqrt", "51")),
    ):
        for suffix, prefix in _ALL:
            yield name + suffix, "xmm", f"{prefix}0f{opcode}c1"
    for number, name in enumerate(_COMPARISONS):
        for suffix, prefix in _ALL:
            yield f"cmp{name}{suffix}", "xmm", f"{prefix}0fc2c1{number:02x}"
    for name, code in (
        *(("rsqrtps", "0f52c1"), ("rsqrtss", "f30f52c1"), ("rcpps", "0f53c1")),
        *(("rcpss", "f30f53c1"), ("cvtps2pd", "0f5ac1"), ("cvtpd2ps", "660f5ac1")),
        *(("cvtss2sd", "f30f5ac1"), ("cvtsd2ss", "f20f5ac1"), ("cvtdq2ps", "0f5bc1")),
        *(("cvtps2dq", "660f5bc1"), ("cvttps2dq", "f30f5bc1"), ("cvtdq2pd", "f30fe6c1")),
        *(("cvtpd2dq", "f20fe6c1"), ("cvttpd2dq", "660fe6c1"), ("haddpd", "660f7cc1")),
        *(("haddps", "f20f7cc1"), ("hsubpd", "660f7dc1"), ("hsubps", "f20f7dc1")),
        *(("addsubpd", "660fd0c1"), ("addsubps", "f20fd0c1")),
    ):
        yield name, "xmm", code
    for name, code in (
        *(("cvtpi2ps", "0f2a02"), ("cvtpi2pd", "660f2a02"), ("cvtsi2ss", "f30f2ac2")),
        *(("cvtsi2sd", "f20f2ac2"), ("cvtsq2ss", "f3480f2ac2"), ("cvtsq2sd", "f2480f2ac2")),
    ):
        yield name, "from", code
    for name, code in (
        *(("cvtss2si", "f30f2dc1"), ("cvtsd2si", "f20f2dc1"), ("cvtss2sq", "f3480f2dc1")),
        *(("cvtsd2sq", "f2480f2dc1"), ("cvttss2si", "f30f2cc1"), ("cvttsd2si", "f20f2cc1")),
        *(("cvttss2sq", "f3480f2cc1"), ("cvttsd2sq", "f2480f2cc1")),
    ):
        yield name, "integer", code
    for name, code in (
        *(("cvtps2pi", "0f2dc1"), ("cvtpd2pi", "660f2dc1"), ("cvttps2pi", "0f2cc1")),
        ("cvttpd2pi", "660f2cc1"),
    ):
        yield name, "mmx", code + _FROM_MMX
    sums = (
        *(("phaddw", "01"), ("phaddd", "02"), ("phaddsw", "03"), ("phsubw", "05")),
        *(("phsubd", "06"), ("phsubsw", "07")),
    )
    for name, opcode in sums:
        yield f"{name}_xmm", "xmm", f"660f38{opcode}c1"
    for name, opcode in (
        *(*sums, ("pshufb", "00"), ("pmaddubsw", "04"), ("psignb", "08"), ("psignw", "09")),
        *(("psignd", "0a"), ("pmulhrsw", "0b"), ("pabsb", "1c"), ("pabsw", "1d")),
        ("pabsd", "1e"),
    ):
        yield f"{name}_mmx", "mmxs", f"0f38{opcode}02" + _FROM_MMX
    for name, code in (
        *(("ucomiss", "0f2ec1"), ("comiss", "0f2fc1"), ("ucomisd", "660f2ec1")),
        ("comisd", "660f2fc1"),
    ):
        yield name, "flags", code + "9f0fb6c483e045"  # lahf; movzx eax, ah; and eax, 0x45


_BY_NUMBER: Final = (
    *(("roundps_xmm", "660f3a08c1", 16), ("roundpd_xmm", "660f3a09c1", 16)),
    *(("roundss_xmm", "660f3a0ac1", 16), ("roundsd_xmm", "660f3a0bc1", 16)),
    *(("dpps_xmm", "660f3a40c1", 256), ("dppd_xmm", "660f3a41c1", 256)),
    ("palignr_mmx", "0f3a0f02", 256),
)
"""SSE functions that get a number, which is a part of the instruction."""
# Between the strings at xmm1 and xmm2, with 64-bit lengths.
_STRINGS: Final = (
    *(("pcmpestrm_xmm", "lengths", "66480f3a60ca"), ("pcmpestri_xmm", "lengths", "66480f3a61ca")),
    *(("pcmpistrm_xmm", "ends", "66480f3a62ca"), ("pcmpistri_xmm", "ends", "66480f3a63ca")),
)
"""(function, routine, instruction) of SSE4.2's comparisons of strings, likewise."""


def _functions() -> list[str]:
    """The functions of Unicorn that are led elsewhere."""
    rows = (*_x87(), *_sse(), *_BY_NUMBER, *_STRINGS)
    return [*(name for name, _, _ in rows), *_ALONE]


_EMMS: Final = (
    "emms",
    "c7875c02000000000000"  # mov dword [rdi+0x25c],0x0
    "48b80101010101010101"  # movabs rax,0x101010101010101
    "48898764020000c3",  # mov qword [rdi+0x264],rax; ret
)
"""Emms: processors clear TOP, too."""


class _Linker:
    """Code that grows, with calls between its parts."""

    def __init__(self, words: list[int]) -> None:
        """`words` stand in front."""
        self.code = bytearray(struct.pack(f"={len(words)}Q", *words))
        self.code += struct.pack("=H6x", _DEFAULT_CONTROL)
        self.labels: dict[str, int] = {}
        for name, routine in (*ROUTINES, _EMMS):
            self.labels[name] = len(self.code)
            self.code += bytes.fromhex(routine)

    def to(self, opcode: str, label: str) -> None:
        """An instruction that ends in the distance to a routine."""
        self.code += bytes.fromhex(opcode)
        distance = self.labels[label] - len(self.code) - 4
        self.code += struct.pack("=i", distance)

    def x87(self, name: str, routine: str, data: bytes) -> None:
        """A function of x87: not while an exception is pending."""
        self.labels[name] = len(self.code)
        # movzx eax, word [rdi+fpuc]; not eax; and ax, [rdi+fpus]; test al, 0x3f; jne pending
        self.code += bytes.fromhex("0fb78762020000f7d066238760020000a83f")
        self.to("0f85", "pending")
        self.code += bytes.fromhex("4c8d0505000000")  # lea r8, [behind]
        self.to("e9", routine)
        self.code += data

    def sse(self, name: str, kind: str, operation: bytes) -> None:
        """A function of SSE: at once under the control that the host itself has."""
        loads, store = _KINDS[kind]
        body = loads + operation
        after = bytes.fromhex(store)
        # ldmxcsr [rdi+mxcsr] ... stmxcsr [rdi+mxcsr]; ret
        quick = bytes.fromhex("0fae9730030000") + body + after
        quick += bytes.fromhex("0fae9f30030000") + _RET
        self.labels.setdefault(name, len(self.code))
        # mov eax, [rdi+mxcsr]; and eax, -64; cmp eax, 0x1f80; jne: bits that there are not, which
        # Unicorn's fxrstor lets pass, must not come to the host's MXCSR.
        self.code += bytes.fromhex("8b873003000083e0c03d801f00000f85")
        self.code += struct.pack("=i", len(quick)) + quick
        self.code += bytes.fromhex("4883ec18")  # sub rsp, 24
        self.to("e8", "guarded")
        self.code += body
        self.to("e8", "judged")
        # Where underflow is not masked it is one without loss too, as flushing to zero shows.
        # test byte [rdi+mxcsr+1], 8; jne over
        self.code += bytes.fromhex("f6873103000008") + bytes((0x75, 10 + len(body)))
        self.to("e8", "flushed")
        self.code += body
        self.to("e8", "drowned")
        self.code += bytes.fromhex("4883c418") + after + _RET  # add rsp, 24

    def _table(self, operation: str, count: int) -> int:
        """All forms of an instruction that ends in a number, eight bytes each; where."""
        at = len(self.code)
        front = bytes.fromhex(operation)
        forms = bytearray((front + b"\0" + _RET).ljust(8, b"\x90") * count)
        forms[len(front) :: 8] = bytes(range(256))[:count]
        self.code += forms
        return at

    def strings(self, name: str, routine: str, operation: str) -> None:
        """A comparison of strings."""
        at = self._table(operation, 256)
        self.labels[name] = len(self.code)
        self.code += b"\x4c\x8d\x1d" + struct.pack("=i", at - len(self.code) - 7)  # lea r11
        self.to("e9", routine)

    def numbered(self, name: str, operation: str, count: int) -> None:
        """A function of SSE with a number in ecx."""
        at = self._table(operation, count)
        self.labels[name] = len(self.code)
        # and ecx, count - 1; lea r11, [table]; lea r11, [r11+rcx*8]
        self.code += b"\x81\xe1" + struct.pack("=I", count - 1) + b"\x4c\x8d\x1d"
        self.code += struct.pack("=i", at - len(self.code) - 4) + b"\x4d\x8d\x1c\xcb"
        kind, more = ("mmxs", _FROM_MMX) if name.endswith("_mmx") else ("xmm", "")
        self.sse(name, kind, b"\x41\xff\xd3" + bytes.fromhex(more))  # call r11


def install(target: str) -> bool:
    """Lead Unicorn's functions to the host's own floating point, for the whole process.

    Args:
        target: how those functions end.

    Returns:
        Whether they are, and nobody has asked for the host to be left out.
    """
    return native.possible() and _led(target)


@cache
def _led(target: str) -> bool:
    """Lead them, once; if that cannot be done nothing has changed."""
    library = _Library(target)
    links = [library.address(name) for name in _LINKS]
    places = [library.address(f"helper_{name}") for name in _functions()]
    # Each on a line of its own: another begins behind the jump that is written to its front.
    if not all(links) or any(not place or place % 16 for place in places):
        return False
    if not _Trial(library).knows_the_structure():
        return False
    linker = _link(links)
    placed = native.place((bytes(linker.code),))
    if placed is None:
        return False
    (base,), memory = placed
    _KEPT.append(memory)
    features = ctypes.CFUNCTYPE(ctypes.c_uint32)(base + linker.labels["features"])
    if features() & _NEEDED != _NEEDED:
        return False
    # mov rax, routine; jmp rax
    jumps = {
        place: b"\x48\xb8" + struct.pack("=Q", base + linker.labels[name]) + b"\xff\xe0"
        for place, name in zip(places, _functions(), strict=True)
    }
    before = {place: ctypes.string_at(place, len(jump)) for place, jump in jumps.items()}
    if linkage.rewrite(jumps) and _Trial(library).computes():
        return True
    linkage.rewrite(before)
    return False


_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""


def _link(links: list[int]) -> _Linker:
    linker = _Linker(links)
    for row in _x87():
        linker.x87(*row)
    for name, kind, operation in _sse():
        linker.sse(name, kind, bytes.fromhex(operation))
    for numbered in _BY_NUMBER:
        linker.numbered(*numbered)
    for comparison in _STRINGS:
        linker.strings(*comparison)
    return linker


class _Library:
    """Unicorn's functions of one target."""

    def __init__(self, target: str) -> None:
        self._target = target

    def address(self, name: str) -> int:
        """The address of a function; 0 if there is none."""
        function = getattr(uclib, f"{name}_{self._target}", None)
        return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


class _Trial:
    """A CPUX86State of its own to call Unicorn's functions on."""

    def __init__(self, library: _Library) -> None:
        self._library = library
        self._memory = ctypes.create_string_buffer(1 << 16)
        self._at = (ctypes.addressof(self._memory) + 63) & -64
        self._shift = self._at - ctypes.addressof(self._memory)

    def _call(self, name: str, *arguments: int) -> int:
        types = [ctypes.c_void_p, *(ctypes.c_uint64 for _ in arguments)]
        function = ctypes.CFUNCTYPE(ctypes.c_uint64, *types)(
            self._library.address(f"helper_{name}")
        )
        return int(function(self._at, *arguments))

    def _get(self, form: str, at: int) -> Any:
        return struct.unpack_from("=" + form, self._memory, self._shift + at)[0]

    def _set(self, form: str, at: int, *values: float) -> None:
        struct.pack_into("=" + form, self._memory, self._shift + at, *values)

    def knows_the_structure(self) -> bool:
        """True if Unicorn's functions, as they are, use the places that the code knows."""
        self._set("8B", 0x264, *([1] * 8))
        self._call("fpush")
        self._call("fldpi_ST0")
        self._call("fldcw", 0xF7F)
        self._call("ldmxcsr", 0x5FA3)
        self._call("fildl_FT0", 3)
        self._call("pcmpistrm_xmm", self._at + 0x4000, self._at + 0x4000, 8)
        self._set("H", 0x260, 0x4123)
        return (
            self._get("I", 0x25C) == 7
            and self._get("Q", 0x264) == 0x0001010101010101
            and self._get("Q", 0x270 + 7 * 16) == 0xC90FDAA22168C235
            and self._get("H", 0x262) == 0xF7F
            and self._get("I", 0x330) == 0x5FA3
            and self._get("Q", 0x310) == 3 << 62
            and self._get("H", 0x318) == 0x4000
            and self._get("Q", 0x98) == 0x8C1
            and self._get("Q", 0x338) == 0xFFFF
            and self._call("fnstsw") & 0xFFFF == 0x7923
        )

    def computes(self) -> bool:
        """True if the functions, as they are led, give what a processor gives."""
        self._set("8B", 0x264, *([1] * 8))
        self._set("H", 0x262, _DEFAULT_CONTROL)
        self._set("I", 0x330, 0x1F80)
        self._call("fpush")
        self._call("fldpi_ST0")
        self._call("fildl_FT0", 3)
        self._call("fdiv_ST0_FT0")
        self._call("fsqrt")
        if (self._get("Q", 0x270 + 7 * 16), self._get("H", 0x278 + 7 * 16)) != _ROOT:
            return False
        self._call("fldl_ST0", struct.unpack("=Q", struct.pack("=d", -8.5))[0])
        self._call("fyl2x")
        if self._call("fnstsw") & 0xFFFF != _INVALID | 0x3800 or self._get("B", 0x264 + 7):
            return False
        first, second = 0x4000, 0x4040
        self._set("dd", first, 1.0, 2.0)
        self._set("dd", second, 3.0, 0.0)
        self._call("divpd", self._at + first, self._at + second)
        quotients = self._get("Q", first), self._get("Q", first + 8)
        return quotients == _QUOTIENTS and self._get("I", 0x330) == 0x1FA4


_ROOT: Final = (0x82FC5E9BE0730F8F, 0x3FFF)
"""The root of pi / 3."""
_QUOTIENTS: Final = (0x3FD5555555555555, 0x7FF << 52)
"""1 / 3, 2 / 0."""
_INVALID: Final = 0x21
"""Flags behind it and a logarithm of a negative number: IE, PE."""
