"""Documents that gdb reads of a target: its registers, threads, libraries, memory."""

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import quoteattr

from engine.arch.gdbtarget import GdbTarget

MEMORY_MAP: Final = (
    '<?xml version="1.0"?>\n<!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map V1.0'
    '//EN" "http://sourceware.org/gdb/gdb-memory-map.dtd">\n'
    '<memory-map><memory type="ram" start="0x0" length="0x8000000000000000"/></memory-map>\n'
)
"""All of a program's memory may be written."""
ALL_MEMORY: Final = MEMORY_MAP.replace("0x8000000000000000", "0xffffffffffffffff")
"""So may that of a machine, whose addresses go to the end."""


def description(target: GdbTarget) -> str:
    """The target's registers."""
    out = [
        '<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n'
        '<target version="1.0">\n'
        f"<architecture>{target.architecture}</architecture>\n"
    ]
    if target.system:
        out.append(f"<osabi>{target.system}</osabi>\n")
    number = 0
    for feature in target.features:
        out.append(f'<feature name="{feature.name}">\n{feature.types}')
        for register in feature.registers:
            group = f' group="{register.group}"' if register.group else ""
            out.append(
                f'<reg name="{register.name}" bitsize="{register.bits}" type="{register.type}"'
                f' regnum="{number}"{group}/>\n'
            )
            number += 1
        out.append("</feature>\n")
    return "".join((*out, "</target>\n"))


def threads(rows: Iterable[tuple[int, str]]) -> str:
    """The threads: ids and names."""
    lines = (f'<thread id="{tid:x}" core="0" name={quoteattr(name)}/>' for tid, name in rows)
    return f'<?xml version="1.0"?>\n<threads>{"".join(lines)}</threads>\n'


def libraries(main: int, rows: Iterable[tuple[str, int, int, int]]) -> str:
    """The libraries: address of the program's link_map; name, link_map, bias, dynamic section."""
    lines = (
        f'<library name={quoteattr(name)} lm="{at:#x}" l_addr="{bias:#x}" l_ld="{dynamic:#x}"'
        ' lmid="0x0"/>'
        for name, at, bias, dynamic in rows
    )
    head = f' main-lm="{main:#x}"' if main else ""
    return f'<library-list-svr4 version="1.0"{head}>{"".join(lines)}</library-list-svr4>\n'
