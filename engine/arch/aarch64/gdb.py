"""Registers of AArch64 as gdb knows them (gdb/features/aarch64-*.xml)."""

from typing import Final

from engine.arch.gdbtarget import GdbFeature, GdbRegister, GdbTarget

_FLAGS: Final = '<flags id="cpsr_flags" size="4">{}</flags>\n'.format(
    "".join(
        f'<field name="{name}" start="{bit}" end="{bit}"/>'
        for name, bit in (("V", 28), ("C", 29), ("Z", 30), ("N", 31))
    )
)
_TYPES: Final = """\
<vector id="v2d" type="ieee_double" count="2"/>
<vector id="v2u" type="uint64" count="2"/>
<vector id="v2i" type="int64" count="2"/>
<vector id="v4f" type="ieee_single" count="4"/>
<vector id="v4u" type="uint32" count="4"/>
<vector id="v4i" type="int32" count="4"/>
<vector id="v8u" type="uint16" count="8"/>
<vector id="v8i" type="int16" count="8"/>
<vector id="v16u" type="uint8" count="16"/>
<vector id="v16i" type="int8" count="16"/>
<vector id="v1u" type="uint128" count="1"/>
<vector id="v1i" type="int128" count="1"/>
<union id="vnd"><field name="f" type="v2d"/><field name="u" type="v2u"/>\
<field name="s" type="v2i"/></union>
<union id="vns"><field name="f" type="v4f"/><field name="u" type="v4u"/>\
<field name="s" type="v4i"/></union>
<union id="vnh"><field name="u" type="v8u"/><field name="s" type="v8i"/></union>
<union id="vnb"><field name="u" type="v16u"/><field name="s" type="v16i"/></union>
<union id="vnq"><field name="u" type="v1u"/><field name="s" type="v1i"/></union>
<union id="aarch64v"><field name="d" type="vnd"/><field name="s" type="vns"/>\
<field name="h" type="vnh"/><field name="b" type="vnb"/><field name="q" type="vnq"/></union>
"""

GDB: Final = GdbTarget(
    "aarch64",
    (
        GdbFeature(
            "org.gnu.gdb.aarch64.core",
            (
                *(GdbRegister(f"x{n}", 64, "int", f"x{n}") for n in range(31)),
                GdbRegister("sp", 64, "data_ptr", "sp"),
                GdbRegister("pc", 64, "code_ptr", "pc"),
                GdbRegister("cpsr", 32, "cpsr_flags", "cpsr"),
            ),
            _FLAGS,
        ),
        GdbFeature(
            "org.gnu.gdb.aarch64.fpu",
            (
                *(GdbRegister(f"v{n}", 128, "aarch64v", f"v{n}") for n in range(32)),
                GdbRegister("fpsr", 32, "int", "fpsr"),
                GdbRegister("fpcr", 32, "int", "fpcr"),
            ),
            _TYPES,
        ),
        GdbFeature("org.gnu.gdb.aarch64.tls", (GdbRegister("tpidr", 64, "data_ptr", "tpidr"),)),
    ),
)
