"""Registers as gdb knows them: the target description that its remote protocol asks for.

Names, sizes, order and features are gdb's (gdb/features/, "Standard Target Features" in its
manual); a register that the emulator calls otherwise, or has not, says where its value comes from.
"""

from typing import Final

from msgspec import Struct


class GdbRegister(Struct, frozen=True):
    """One register of a description.

    Attributes:
        name: gdb's.
        bits: of its value.
        type: gdb's word for it.
        source: the emulator's name; "" for one that always has the same value.
        value: that of one without a source.
        group: where `info registers` has it, "" for the usual place.
    """

    name: str
    bits: int
    type: str
    source: str = ""
    value: int = 0
    group: str = ""


class GdbFeature(Struct, frozen=True):
    """Some registers that belong together.

    Attributes:
        name: gdb's.
        registers: in gdb's order.
        types: of these registers, in XML.
    """

    name: str
    registers: tuple[GdbRegister, ...]
    types: str = ""


class GdbTarget(Struct, frozen=True):
    """An architecture as gdb has it.

    Attributes:
        architecture: its name.
        features: all registers, in the order of the `g` packet.
        system: what runs there, in gdb's words; "" for nothing that gdb has a word for.
    """

    architecture: str
    features: tuple[GdbFeature, ...]
    system: str = "GNU/Linux"

    @property
    def registers(self) -> tuple[GdbRegister, ...]:
        """All of them, by gdb's numbers."""
        return tuple(one for feature in self.features for one in feature.registers)


VECTOR_TYPES: Final = """\
<vector id="v4f" type="ieee_single" count="4"/>
<vector id="v2d" type="ieee_double" count="2"/>
<vector id="v16i8" type="int8" count="16"/>
<vector id="v8i16" type="int16" count="8"/>
<vector id="v4i32" type="int32" count="4"/>
<vector id="v2i64" type="int64" count="2"/>
<union id="vec128">
<field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/>
<field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/>
<field name="v4_int32" type="v4i32"/><field name="v2_int64" type="v2i64"/>
<field name="uint128" type="uint128"/>
</union>
"""
"""Views of a register of 128 bits."""
