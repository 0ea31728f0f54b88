"""Words that describe: info address, auxv, float, inferiors, probes, program, scope, vector."""

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image.locationtexts import all_described, described
from engine.image.reader import DamagedError
from engine.image.scopes import DieVariable, Variable
from engine.image.sdt import static_probes
from engine.language.memory_texts import marked_error
from engine.language.real_texts import exact_text
from engine.language.values import extended
from engine.session.debugger.debugger import NOT_RUN, Debugger
from engine.session.debugger.looking import Looking
from engine.session.debugger.places import CodePlace
from engine.session.debugger.signal_rules import signal_name, signal_text

_AUXILIARY: Final = {  # type: (name, description, form)
    0: ("AT_NULL", "End of vector", "x"),
    1: ("AT_IGNORE", "Entry should be ignored", "x"),
    2: ("AT_EXECFD", "File descriptor of program", "d"),
    3: ("AT_PHDR", "Program headers for program", "x"),
    4: ("AT_PHENT", "Size of program header entry", "d"),
    5: ("AT_PHNUM", "Number of program headers", "d"),
    6: ("AT_PAGESZ", "System page size", "d"),
    7: ("AT_BASE", "Base address of interpreter", "x"),
    8: ("AT_FLAGS", "Flags", "x"),
    9: ("AT_ENTRY", "Entry point of program", "x"),
    10: ("AT_NOTELF", "Program is not ELF", "d"),
    11: ("AT_UID", "Real user ID", "d"),
    12: ("AT_EUID", "Effective user ID", "d"),
    13: ("AT_GID", "Real group ID", "d"),
    14: ("AT_EGID", "Effective group ID", "d"),
    15: ("AT_PLATFORM", "String identifying platform", "s"),
    16: ("AT_HWCAP", "Machine-dependent CPU capability hints", "x"),
    17: ("AT_CLKTCK", "Frequency of times()", "d"),
    18: ("AT_FPUCW", "Used FPU control word", "x"),
    23: ("AT_SECURE", "Boolean, was exec setuid-like?", "d"),
    24: ("AT_BASE_PLATFORM", "String identifying base platform", "s"),
    25: ("AT_RANDOM", "Address of 16 random bytes", "x"),
    26: ("AT_HWCAP2", "Extension of AT_HWCAP", "x"),
    31: ("AT_EXECFN", "File name of executable", "s"),
    32: ("AT_SYSINFO", "Special system info/entry points", "x"),
    33: ("AT_SYSINFO_EHDR", "System-supplied DSO's ELF header", "x"),
    51: ("AT_MINSIGSTKSZ", "Minimum stack size for signal delivery", "x"),
}
_X87: Final = ("fctrl", "fstat", "ftag")
_CONTROL: Final = ((0, "IM"), (1, "DM"), (2, "ZM"), (3, "OM"), (4, "UM"), (5, "PM"))
_STATUS: Final = (
    *((0, "IE"), (1, "DE"), (2, "ZE"), (3, "OE"), (4, "UE"), (5, "PE")),
    *((7, "ES"), (6, "SF"), (8, "C0"), (9, "C1"), (10, "C2"), (14, "C3")),
)
_PRECISION: Final = (
    "Single Precision (24-bits)",
    "Reserved",
    "Double Precision (53-bits)",
    "Extended Precision (64-bits)",
)
_ROUNDING: Final = ("Round to nearest", "Round down", "Round up", "Round toward zero")
_X87_DIGITS: Final = 19
_TAGS: Final = ("Valid   ", "Zero    ", "Special ", "Empty   ")


class DescribingWords:
    """Describes symbols, registers and the process."""

    def __init__(self, debugger: Debugger, looking: Looking) -> None:
        """Describe those of a debugger's guest."""
        self._debugger = debugger
        self._looking = looking

    # -- symbols ----------------------------------------------------------------------------

    def info_scope(self, rest: str) -> None:
        """Variables that are in sight at a place: info scope PLACE."""
        if not rest:
            raise CommandError("requires an argument (function, line or *addr) to define a scope")
        debugger = self._debugger
        place = debugger.place(rest)
        module = debugger.frames.seen.modules.at(place.address)
        found = list(self._variables(module, place)) if module is not None else []
        if module is None or not found:
            debugger.put(f"Scope for {rest} contains no locals or arguments.")
            return
        debugger.put(f"Scope for {rest}:")
        for variable in found:
            text = self._location(variable, module, place.address - module.bias)
            size = variable.type.size or 0
            text = f"in {text}" if text.startswith("static storage") else text
            length = "" if text == "optimized out" else f", length {size}"
            self._lines(f"Symbol {variable.name} is {text}{length}.")

    def _variables(self, module: Module, place: CodePlace) -> Iterator[Variable]:
        try:
            scope = self._debugger.files.scope(module, place.address - module.bias)
        except ImageError:
            scope = None
        found = scope.visible if scope is not None else ()
        return iter(sorted(found, key=_order))

    def _lines(self, text: str) -> None:
        for line in text.split("\n"):
            self._debugger.put(line)

    def _location(self, variable: Variable, module: Module, pc: int) -> str:
        names = {item.dwarf: item.name for item in self._debugger.control.session.arch.registers}

        def name(number: int) -> str:
            return names.get(number, f"r{number}")

        if not isinstance(variable, DieVariable):
            return variable.location.text(name)
        try:
            every = all_described(variable.entry, module.bias, name)
            if every is not None:
                return every
            return described(variable.entry, pc, module.bias, name)
        except DamagedError as error:
            raise CommandError(f"the debug information is damaged: {error}") from None

    def info_address(self, rest: str) -> None:
        """The place of a variable or function: info address NAME."""
        if not rest:
            raise CommandError("Argument required.")
        debugger = self._debugger
        scope, frame = debugger.scope, debugger.frame
        for variable in scope.locals():
            if variable.name == rest and frame is not None:
                module = debugger.frames.seen.modules.at(frame.pc)
                if module is not None:
                    text = self._location(variable, module, frame.pc - module.bias)
                    self._lines(f'Symbol "{rest}" is {text}.')
                    return
        for module in debugger.files.modules():
            names = debugger.files.names(module)
            known = names.variable(rest) if names is not None else None
            if known is not None:
                debugger.put(f'Symbol "{rest}" is {self._location(known, module, 0)}.')
                return
            function = names.function(rest) if names is not None else None
            if function is not None:
                at = function[1] + module.bias
                block = debugger.files.variables(module).block_at(function[1])
                whole = rest if block is None else block.functions[-1].name
                debugger.put(f'Symbol "{whole}" is a function at address {at:#x}.')
                return
        for module in debugger.files.modules():
            for symbol in module.symbols.find_all(rest):
                at = symbol.address + module.bias
                debugger.put(
                    f'Symbol "{rest}" is at {at:#x} in a file compiled without debugging.'
                )
                return
        raise CommandError(f'No symbol "{rest}" in current context.')

    def info_probes(self, rest: str) -> None:
        """Static probes of files: info probes [stap] [PROVIDER [NAME [OBJECT]]]."""
        words = rest.split()
        if words and words[0] not in ("all", "stap"):
            raise CommandError(
                f'Undefined info probes command: "{words[0]}".  Try "help info probes".'
            )
        words = words[1:]
        patterns = []
        for word in (*words, "", "", "")[:3]:
            try:
                patterns.append(re.compile(word))
            except re.error as error:
                raise CommandError(f"Invalid regexp: {error}") from None
        rows: list[tuple[str, ...]] = []
        digits = self._debugger.control.session.arch.bits // 4
        for module in self._debugger.files.modules():
            for probe in static_probes(module.image):
                texts = probe.provider, probe.name, module.name
                if all(one.search(text) for one, text in zip(patterns, texts, strict=True)):
                    at = f"0x{probe.address + module.bias:0{digits}x}"
                    counter = probe.semaphore + module.bias
                    shown = f"0x{counter:0{digits}x}" if probe.semaphore else ""
                    rows.append(("stap", probe.provider, probe.name, at, shown, module.name))
        if not rows:
            self._debugger.put("No probes matched.")
            return
        heads: tuple[str, ...] = ("Type", "Provider", "Name", "Where", "Semaphore", "Object")
        table = [heads, *sorted(rows, key=lambda row: (row[1:3], row[3]))]
        wide = [max(len(row[n]) for row in table) for n in range(len(heads))]
        for row in table:
            cells = (f"{text:<{width}}" for text, width in zip(row, wide, strict=True))
            self._debugger.put(" ".join(cells) + " ")

    # -- the process ------------------------------------------------------------------------

    def info_auxv(self, rest: str) -> None:
        """The auxiliary vector, which the kernel has given the program."""
        debugger = self._debugger
        start = debugger.control.session.seen.start if debugger.started else None
        if start is None or not start.auxv:
            raise CommandError("The program has no auxiliary information now.")
        form = "<QQ" if debugger.scope.order == "little" else ">QQ"
        printer = debugger.frames.printer(debugger.scope)
        for key, value in struct.iter_unpack(form, start.auxv):
            name, what, letter = _AUXILIARY.get(key, ("???", "", "x"))
            shown = f"{value:#x}" if letter != "d" else str(value)
            if letter == "s":
                try:
                    shown += f" {printer.texts.string_at(value)[0]}"
                except GuestFaultError as error:
                    shown += f" {marked_error(error)}"
            debugger.put(f"{key:<4} {name:<20} {what:<30} {shown}")
            if not key:
                return

    def info_program(self, rest: str) -> None:
        """The process, where it stands, and what it was stopped by."""
        debugger = self._debugger
        if not debugger.started:
            debugger.put("The program being debugged is not being run.")
            return
        put, frames = debugger.put, debugger.frames.all
        put(f"\tUsing the running image of child {debugger.threads.text()}.")
        if frames:
            put(f"Program stopped at {frames[0].pc:#x}.")
        stops = sorted(stop.number for stop in debugger.stops.reached if stop.number)
        reached = [number for number in stops if number in debugger.stops.all]
        if len(reached) < len(stops):
            put("It stopped at a breakpoint that has since been deleted.")
        elif reached:
            put(f"It stopped at breakpoint {reached[0]}.")
            for number in reached[1:]:
                put(f"It stopped at breakpoint {number} as well.")
        elif debugger.signal:
            name, text = signal_name(debugger.signal), signal_text(debugger.signal)
            put(f"It stopped with signal {name}, {text}.")
        else:
            put("It stopped after being stepped.")

    def info_inferiors(self, rest: str) -> None:
        """The processes of the program, the one that is looked at marked."""
        debugger = self._debugger
        session = debugger.control.session
        rows = [("1", "<null>", "", session.paths.guest)]
        here = 0
        if debugger.started:
            pids = sorted({session.machine.pids.get(tid, tid) for tid in session.machine.threads})
            now = session.machine.pids.get(debugger.thread, debugger.thread)
            here = pids.index(now) if now in pids else 0
            rows = []
            for number, pid in enumerate(pids, 1):
                process = session.machine.processes.get(pid)
                exe = process.space.exe if process is not None else b""
                path = exe.decode(errors="replace") or session.paths.guest
                rows.append((str(number), f"process {pid}", "1 (emulator)", path))
        heads = ("Num", "Description", "Connection", "Executable")
        floors = (4, 17, 20, 17)
        wide = [max(floors[n], *(len(row[n]) for row in rows)) for n in range(4)]
        for number, row in enumerate((heads, *rows)):
            mark = "* " if number == here + 1 else "  "
            line = " ".join(f"{row[n]:<{wide[n]}}" for n in range(4))
            debugger.put(f"{mark}{line} ")

    # -- registers --------------------------------------------------------------------------

    def info_all_registers(self, rest: str) -> None:
        """Print the registers, those for floating-point numbers and vectors too."""
        self._registers(rest, None)

    def info_vector(self, rest: str) -> None:
        """Registers for vectors."""
        self._registers("", ("mxcsr", "vector"))

    def _registers(self, rest: str, groups: tuple[str, ...] | None) -> None:
        if rest:
            self._looking.info_registers(rest)
            return
        names = [
            item.name
            for item in self._debugger.control.session.arch.registers
            if groups is None or item.group in groups or item.name in groups
        ]
        if not names:
            raise CommandError("No vector information available on this architecture.")
        self._looking.info_registers(" ".join(names))

    def info_float(self, rest: str) -> None:
        """The floating-point unit: registers of x87, its control and status words."""
        debugger = self._debugger
        if not debugger.started:
            raise CommandError(NOT_RUN)
        scope = debugger.frames.scope()
        values = [scope.register(name) for name in _X87]
        if any(value is None for value in values):
            names = [
                item.name
                for item in debugger.control.session.arch.registers
                if item.group in ("float", "vector")
            ]
            self._looking.info_registers(" ".join(names))
            return
        control, status, tags = (
            int.from_bytes(value.raw, scope.order) for value in values if value is not None
        )
        top = status >> 11 & 7
        put = debugger.put
        for number in range(7, -1, -1):
            register = scope.register(f"st{(number - top) % 8}")
            raw = register.raw[:10] if register is not None else bytes(10)
            tag = tags >> 2 * number & 3
            mark = "=>" if number == top else "  "
            shown = f"0x{int.from_bytes(raw, 'little'):020x}"
            put(f"{mark}R{number}: {_TAGS[tag]}{shown}{_number(raw, tag)}")
        put("")
        groups = (_STATUS[:6], _STATUS[6:7], _STATUS[7:8], _STATUS[8:])
        shown = "  ".join(_flags(status, group) for group in groups)
        put(f"Status Word:         {status:#06x}  {shown}")
        put(f"                       TOP: {top}")
        put(f"Control Word:        {control:#06x}  {_flags(control, _CONTROL)}")
        put(f"                       PC: {_PRECISION[control >> 8 & 3]}")
        put(f"                       RC: {_ROUNDING[control >> 10 & 3]}")
        put(f"Tag Word:            {tags:#06x}")
        put("Instruction Pointer: 0x00:0x00000000")  # x87's pointers are not kept
        put("Operand Pointer:     0x00:0x00000000")
        put("Opcode:              0x0000")


def _flags(word: int, names: tuple[tuple[int, str], ...]) -> str:
    """The names of the bits that are set, each in its own place."""
    return "".join(f" {name if word >> bit & 1 else '  '}" for bit, name in names)


def _order(variable: Variable) -> tuple[int, int]:
    """The innermost block's variables first, those of a block as they are declared."""
    if not isinstance(variable, DieVariable):
        return 0, 0
    shape = variable.entry.unit.shape
    index = bisect_left(shape.offsets, variable.entry.offset)
    depth, around = 0, index
    while around >= 0:
        depth, around = depth + 1, shape.parents[around]
    return -depth, index


def _number(raw: bytes, tag: int) -> str:
    """The number in a register of x87 as gdb's i387_print_float_info writes it."""
    if tag == 3:
        return ""
    top = int.from_bytes(raw[8:], "little")
    sign = "-" if top >> 15 else "+"
    if top & 0x7FFF == 0x7FFF:
        mantissa = int.from_bytes(raw[:8], "little")
        if mantissa == 1 << 63:
            return f" {sign}Inf"
        kind = "QNaN" if mantissa >> 62 == 3 else "SNaN" if mantissa >> 63 else "Unsupported"
        return f" {sign if kind == 'Unsupported' else ''}{kind}".rstrip()
    number = extended(raw)
    shown = exact_text(abs(number), _X87_DIGITS) if isinstance(number, Fraction) else str(number)
    return f" {sign + shown:<27}"
