"""Registers of x86-64 as gdb knows them (gdb/features/i386/64bit-*.xml)."""

from typing import Final

from engine.arch.gdbtarget import VECTOR_TYPES, GdbFeature, GdbRegister, GdbTarget

_FLAGS: Final = '<flags id="i386_eflags" size="4">{}</flags>\n'.format(
    "".join(
        f'<field name="{name}" start="{bit}" end="{bit}"/>'
        for name, bit in (
            *(
                ("CF", 0),
                ("", 1),
                ("PF", 2),
                ("AF", 4),
                ("ZF", 6),
                ("SF", 7),
                ("TF", 8),
                ("IF", 9),
            ),
            *(("DF", 10), ("OF", 11), ("NT", 14), ("RF", 16), ("VM", 17), ("AC", 18)),
            *(("VIF", 19), ("VIP", 20), ("ID", 21)),
        )
    )
)
_POINTERS: Final = frozenset({"rbp", "rsp"})
_NAMES: Final = (
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"),
    *(f"r{number}" for number in range(8, 16)),
)
_SEGMENTS: Final = {"cs": 0x33, "ss": 0x2B, "ds": 0, "es": 0, "fs": 0, "gs": 0}
"""Selectors of a 64-bit program."""
_CONTROL: Final = ("cr0", "cr2", "cr3", "cr4")
_X87: Final = ("fctrl", "fstat", "ftag")
_X87_PLACES: Final = ("fiseg", "fioff", "foseg", "fooff", "fop")


def _core(segments: tuple[GdbRegister, ...]) -> GdbFeature:
    """Registers that each x86-64 has, with segment registers of one's own."""
    return GdbFeature(
        "org.gnu.gdb.i386.core",
        (
            *(
                GdbRegister(name, 64, "data_ptr" if name in _POINTERS else "int64", name)
                for name in _NAMES
            ),
            GdbRegister("rip", 64, "code_ptr", "rip"),
            GdbRegister("eflags", 32, "i386_eflags", "eflags"),
            *segments,
            *(GdbRegister(f"st{n}", 80, "i387_ext", f"st{n}") for n in range(8)),
            *(GdbRegister(name, 32, "int", name, group="float") for name in _X87),
            *(GdbRegister(name, 32, "int", group="float") for name in _X87_PLACES),
        ),
        _FLAGS,
    )


_SSE: Final = GdbFeature(
    "org.gnu.gdb.i386.sse",
    (
        *(GdbRegister(f"xmm{n}", 128, "vec128", f"xmm{n}") for n in range(16)),
        GdbRegister("mxcsr", 32, "int", "mxcsr", group="vector"),
    ),
    VECTOR_TYPES,
)
_BASES: Final = GdbFeature(
    "org.gnu.gdb.i386.segments",
    (
        GdbRegister("fs_base", 64, "int", "fs_base"),
        GdbRegister("gs_base", 64, "int", "gs_base"),
    ),
)
GDB: Final = GdbTarget(
    "i386:x86-64",
    (
        _core(tuple(GdbRegister(name, 32, "int32", "", n) for name, n in _SEGMENTS.items())),
        _SSE,
        GdbFeature(
            "org.gnu.gdb.i386.avx",
            tuple(GdbRegister(f"ymm{n}h", 128, "uint128", f"ymm{n}h") for n in range(16)),
        ),
        GdbFeature(  # without it gdb takes the target for none of Linux
            "org.gnu.gdb.i386.linux",
            (GdbRegister("orig_rax", 64, "int", value=(1 << 64) - 1),),
        ),
        _BASES,
    ),
)
GDB_SYSTEM: Final = GdbTarget(
    "i386:x86-64",
    (
        _core(tuple(GdbRegister(name, 32, "int32", name) for name in _SEGMENTS)),
        _SSE,
        _BASES,
        GdbFeature(
            "org.kprobe-tui.x86-64.system",
            tuple(GdbRegister(name, 64, "int", name) for name in (*_CONTROL, "efer")),
        ),
    ),
    system="",
)
"""A processor in system mode."""
