"""Registers of RISC-V as gdb knows them (gdb/features/riscv/64bit-*.xml)."""

from typing import Final

from engine.arch.gdbtarget import GdbFeature, GdbRegister, GdbTarget

_NAMES: Final = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)
_FLOATS: Final = (
    *(f"ft{number}" for number in range(8)),
    *("fs0", "fs1"),
    *(f"fa{number}" for number in range(8)),
    *(f"fs{number}" for number in range(2, 12)),
    *("ft8", "ft9", "ft10", "ft11"),
)
_POINTERS: Final = frozenset({"sp", "gp", "tp"})
_GDB_NAMES: Final = {"s0": "fp"}
_TYPES: Final = (
    '<union id="riscv_double"><field name="float" type="ieee_single"/>'
    '<field name="double" type="ieee_double"/></union>\n'
)

GDB: Final = GdbTarget(
    "riscv:rv64",
    (
        GdbFeature(
            "org.gnu.gdb.riscv.cpu",
            (
                *(
                    GdbRegister(
                        _GDB_NAMES.get(name, name),
                        64,
                        "data_ptr" if name in _POINTERS else "code_ptr" if name == "ra" else "int",
                        name,
                    )
                    for name in _NAMES
                ),
                GdbRegister("pc", 64, "code_ptr", "pc"),
            ),
        ),
        GdbFeature(
            "org.gnu.gdb.riscv.fpu",
            (
                *(GdbRegister(name, 64, "riscv_double", name) for name in _FLOATS),
                GdbRegister("fcsr", 32, "int", "fcsr"),
            ),
            _TYPES,
        ),
    ),
)
