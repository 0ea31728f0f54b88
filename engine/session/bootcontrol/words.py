"""gdb's words for a booted kernel: those that move it, place stops in it, and look at it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.cpu.unicorn_watches import READ, WRITE
from engine.errors import CommandError, GuestFaultError, take_nothing
from engine.image.datatypes import TypeKind
from engine.insn.disasm import Disassembler
from engine.language.evaluation import evaluate, type_of
from engine.language.format_letters import lines_of
from engine.language.printing import Printer
from engine.language.type_flags import TypeFlags
from engine.language.typetexts import definition_of
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.kernel_hit_views import KernelHitViewing
from engine.session.bootcontrol.motions import MachineMotions
from engine.session.bootcontrol.places import KernelPlaceNames
from engine.session.bootcontrol.probe_rows import TEMPORARY, WATCHES, BootProbeRows
from engine.session.bootcontrol.scope import KernelScope
from engine.session.bootcontrol.tasks import KernelTaskList
from engine.session.protocol.views import StopCause

Motion = Callable[[], None]
_FORM: Final = re.compile(r"/(-?\d*)([a-z]*)\s*(.*)", re.DOTALL)
_SIZES: Final = {"b": 1, "h": 2, "w": 4, "g": 8}
_OFFERED: Final = 60
_COUNT_MOST: Final = 1 << 24


class BootWord(Struct, frozen=True):
    """A word.

    Attributes:
        names: the whole one first, then short ones.
        help: what it does, one sentence.
        do: carries it out, given what stands behind it; None for a motion.
        motion: gives a motion, likewise; None for a word that moves nothing.
        behind: of a motion, called in front of it: gives a function that tells what is printed
            behind it, "" for why the machine stands; None for a word that prints that alone.
        takes: "place", "task", or "" for nothing that is completed.
    """

    names: tuple[str, ...]
    help: str
    do: Callable[[str], str] | None = None
    motion: Callable[[str], Motion] | None = None
    behind: Callable[[], Callable[[], str]] | None = None
    takes: str = ""


class BootWords:
    """Carries lines of words out on one boot."""

    def __init__(
        self,
        boot: ControlledBoot,
        rows: BootProbeRows,
        motions: MachineMotions,
        changed: Callable[[], None],
    ) -> None:
        """Take a boot.

        Args:
            boot: the boot.
            rows: its probes and breakpoints.
            motions: moves it.
            changed: called behind a word that has changed something.
        """
        self._boot, self._rows, self._motions, self._changed = boot, rows, motions, changed
        self._places = KernelPlaceNames(boot)
        self._scope = KernelScope(boot)
        self._printer = Printer(self._scope, self._scope.symbol)
        self._disassembler = Disassembler(boot.opened.arch)
        self._tasks = KernelTaskList(boot)
        self._hit = KernelHitViewing(boot, motions.hits)
        self._next = 0
        self._all = self._table()
        self._by_name = {name: word for word in self._all for name in word.names}

    def _table(self) -> tuple[BootWord, ...]:
        motions = self._motions
        return (
            BootWord(("break", "b", "br"), "Stop at a place", self._break, takes="place"),
            BootWord(("tbreak", "tb"), "Stop at a place once",
                     lambda rest: self._break(rest, once=True), takes="place"),
            BootWord(("advance", "until", "u"), "Run on to a place",
                        motion=lambda rest: partial(motions.to, self._places.address(rest)),
                        takes="place"),
            BootWord(("watch",), "Stop where a value in memory is changed", self._watch(WRITE),
                     takes="place"),
            BootWord(("rwatch",), "Stop where memory is read", self._watch(READ), takes="place"),
            BootWord(("awatch",), "Stop where memory is read or written",
                     self._watch(READ | WRITE), takes="place"),
            BootWord(("delete", "d"), "Take probes and breakpoints out, all without numbers",
                        self._delete),
            BootWord(("enable",), "Have probes record and stop again",
                        lambda rest: self._enable(rest, on=True)),
            BootWord(("disable",), "Keep probes and breakpoints quiet",
                        lambda rest: self._enable(rest, on=False)),
            BootWord(("catch",), "Stop at an oops, a panic or a warning; off: at none",
                        self._catch),
            BootWord(("ignore",), "Pass a breakpoint by: ignore NUMBER COUNT", self._ignore),
            BootWord(("condition",), "Stop at a breakpoint only where an expression holds:"
                        " condition NUMBER [EXPRESSION]", self._condition),
            BootWord(("continue", "c", "fg"), "Run on to the next stop; N: pass the breakpoint at"
                        " hand by N - 1 times", motion=self._passing(motions.go)),
            BootWord(("stepi", "si"), "Execute an instruction, or N",
                        motion=lambda rest: partial(motions.step, self._count(rest))),
            BootWord(("nexti", "ni"), "The same, calls as a whole",
                        motion=lambda rest: partial(motions.step, self._count(rest), over=True)),
            BootWord(("step", "s"), "Run on to another source line, N times",
                        motion=self._times(partial(motions.line, over=False))),
            BootWord(("next", "n"), "The same, calls as a whole",
                        motion=self._times(partial(motions.line, over=True))),
            BootWord(("finish", "fin"), "Run until the function has returned",
                        motion=self._alone("finish", motions.finish), behind=self.returning),
            BootWord(("next-hit",), "Run on to the next hit of any probe, the kernel's own, too;"
                        " N: to the Nth", behind=lambda: self._tell_hit,
                        motion=self._times(partial(motions.go, every=True), StopCause.HIT)),
            BootWord(("phase",), "Go on to the next phase of a hit of the kernel's own kprobes,"
                        " N times",
                        motion=self._times(motions.phase), behind=lambda: self._tell_hit),
            BootWord(("reverse-phase",), "Go back to the phase before, N times",
                        motion=self._times(motions.phase_back), behind=lambda: self._tell_hit),
            BootWord(("reverse-continue", "rc"), "Go back to the last stop; N as of continue",
                        motion=self._passing(motions.go_back)),
            BootWord(("reverse-stepi", "rsi"), "Go back by an instruction, or N",
                        motion=self._times(motions.step_back)),
            BootWord(("reverse-nexti", "rni"), "The same, calls as a whole",
                        motion=self._times(partial(motions.step_back, over=True))),
            BootWord(("reverse-step", "rs"), "Go back to the source line before, N times",
                        motion=self._times(partial(motions.line_back, over=False))),
            BootWord(("reverse-next", "rn"), "The same, calls as a whole",
                        motion=self._times(partial(motions.line_back, over=True))),
            BootWord(("reverse-finish",), "Go back to the call of the function",
                        motion=self._alone("reverse-finish", motions.finish_back)),
            BootWord(("seek",), "Go to a time of the boot in nanoseconds, as the header shows it",
                        motion=self._seek),
            BootWord(("backtrace", "bt", "where"), "Print the call stack", self._backtrace),
            BootWord(("print", "p", "inspect", "call"), "Print a value; types are the kernel's",
                        self._print, takes="place"),
            BootWord(("output",), "The same without a number", self._output, takes="place"),
            BootWord(("x",), "Examine memory: x/NFU ADDRESS", self._examine, takes="place"),
            BootWord(("ptype",), "Print a type; ptype/o with offsets", self._ptype),
            BootWord(("whatis",), "Print the type of an expression", self._whatis),
            BootWord(("set",), "Change a register or memory: set var X = Y", self._set),
            BootWord(("info", "i"), "Tell of breakpoints, registers, symbol, threads, modules,"
                        " hit, kprobes", self._info),
            BootWord(("help", "h"), "Tell what the words do", self._help),
            BootWord(("lx-ps",), "List the kernel's tasks", self._told("lx-ps", self._info_tasks)),
            BootWord(("lx-lsmod",), "List the modules that are loaded",
                        self._told("lx-lsmod", self._info_modules)),
        )  # fmt: skip

    # -- what stands behind a word ------------------------------------------------------------

    def _times(
        self, motion: Motion, through: StopCause = StopCause.ARRIVED
    ) -> Callable[[str], Motion]:
        """A word that moves as often as the number behind it says."""
        return lambda rest: partial(self._motions.repeated, motion, self._count(rest), through)

    def _passing(self, motion: Motion) -> Callable[[str], Motion]:
        """A word that passes the breakpoint at hand by, all but the last time."""
        return lambda rest: (
            partial(self._motions.passing, motion, self._count(rest)) if rest else motion
        )

    @staticmethod
    def _alone(name: str, motion: Motion) -> Callable[[str], Motion]:
        """A word of a motion that takes nothing."""

        def taken(rest: str) -> Motion:
            take_nothing(name, rest)
            return motion

        return taken

    @staticmethod
    def _told(name: str, tell: Callable[[], str]) -> Callable[[str], str]:
        """A word that tells of something, and takes nothing."""

        def told(rest: str) -> str:
            take_nothing(name, rest)
            return tell()

        return told

    def _count(self, rest: str) -> int:
        """The number behind a word, an expression as in gdb; 1 for none."""
        if not rest:
            return 1
        count = evaluate(rest, self._scope).as_address
        if not 0 < count < _COUNT_MOST:
            raise CommandError(f"{rest}: a number from 1 to {_COUNT_MOST - 1} is wanted")
        return count

    # -- lines --------------------------------------------------------------------------------

    def words(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Names of all words, and what each does."""
        return tuple((word.names, word.help) for word in self._all)

    def motion(self, line: str) -> Motion | None:
        """The motion that a line stands for; None for a line that moves nothing.

        Raises:
            CommandError: the line means nothing.
        """
        word, rest = self._read(line)
        return word.motion(rest) if word is not None and word.motion is not None else None

    def carry_out(self, line: str) -> str:
        """Carry out a line that moves nothing; what it prints.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        word, rest = self._read(line)
        if word is None or word.do is None:
            return ""
        try:
            return word.do(rest)
        except GuestFaultError as error:
            at = getattr(error, "address", 0)
            raise CommandError(f"Cannot access memory at address {at:#x}") from error

    def _read(self, line: str) -> tuple[BootWord | None, str]:
        """The word of a line, and what stands behind it."""
        line = line.strip()
        if not line or line.startswith("#"):
            return None, ""
        found = re.match(r"[A-Za-z][\w-]*", line)
        name = found[0] if found is not None else line.split()[0]
        rest = line[len(name) :].strip()
        word = self._by_name.get(name)
        if word is None:
            begun = [one for one in self._by_name if one.startswith(name)] if found else []
            meant = {id(self._by_name[one]) for one in begun}
            if len(meant) > 1:
                raise CommandError(f'Ambiguous command "{name}": {", ".join(sorted(begun)[:8])}.')
            if not meant:
                raise CommandError(f'Undefined command: "{name}" in a booted kernel.  Try "help".')
            word = self._by_name[begun[0]]
        return word, rest

    def complete(self, line: str) -> list[str]:
        """Whole lines that a line may become."""
        head, space, begun = line.rpartition(" ")
        if not space:
            return sorted(one for one in self._by_name if one.startswith(line))[:_OFFERED]
        word = self._by_name.get(head.split()[0].partition("/")[0]) if head.split() else None
        if word is None:
            return []
        if word.names[0] == "info":
            return [f"{head} {one}" for one in self._infos() if one.startswith(begun)]
        if word.takes != "place":
            return []
        mark = re.match(r"[*&(]*", begun)
        front = mark[0] if mark is not None else ""
        wanted = begun[len(front) :]
        if not wanted:
            return []
        names = (one for one in self._boot.opened.image.names.names if one.startswith(wanted))
        found = sorted(set(names), key=lambda one: (len(one), one))[:_OFFERED]
        return [f"{head} {front}{one}" for one in found]

    def returning(self) -> Callable[[], str]:
        """Note which function is to return; tells its value behind that, as `finish` does."""
        bounds = self._boot.opened.names.bounds(self._boot.machine.pc)

        def told() -> str:
            value = self._scope.returned(bounds[0]) if bounds is not None else None
            if value is None:
                return ""
            self._scope.values.append(value)
            return f"Value returned is ${len(self._scope.values)} = {self._printer.text(value)}"

        return told

    def behind(self, line: str) -> Callable[[], str] | None:
        """Tell what is printed behind the motion of a line; see `BootWord.behind`."""
        word, _ = self._read(line)
        return word.behind() if word is not None and word.behind is not None else None

    def _tell_hit(self) -> str:
        """The hit of the kernel's own that the machine stands in, in words; "" for none."""
        return "\n".join(self._hit.lines)

    def _help(self, rest: str) -> str:
        words = self._all
        if rest:
            word, _ = self._read(rest)
            words = (word,) if word is not None else ()
        return "\n".join(f"{', '.join(word.names)} -- {word.help}." for word in words)

    # -- stops --------------------------------------------------------------------------------

    def _break(self, rest: str, *, once: bool = False) -> str:
        self._rows.add_stop(f"{TEMPORARY if once else ''}{rest or hex(self._boot.machine.pc)}")
        self._changed()
        entry = self._rows.entries[-1]
        kind = "Temporary breakpoint" if once else "Breakpoint"
        return f"{kind} {entry.row.id} at {entry.addresses[0]:#x}"

    def _watch(self, kinds: int) -> Callable[[str], str]:
        """A watchpoint on what an expression means now, as gdb's `watch -l`."""

        def do(rest: str) -> str:
            word = next(word for word, each in WATCHES.items() if each == kinds)
            self._rows.add_stop(f"{word} {rest}")
            self._changed()
            return f"Hardware watchpoint {self._rows.entries[-1].row.id}: {rest}"

        return do

    def _numbers(self, rest: str) -> tuple[int, ...]:
        words = rest.removeprefix("breakpoints").split()
        if not all(word.isdecimal() for word in words):
            raise CommandError(f"Bad breakpoint number '{rest}'")
        return tuple(map(int, words)) or tuple(one.row.id for one in self._rows.entries)

    def _delete(self, rest: str) -> str:
        self._rows.delete(self._numbers(rest))
        self._changed()
        return ""

    def _enable(self, rest: str, *, on: bool) -> str:
        self._rows.enable(self._numbers(rest), on=on)
        self._changed()
        return ""

    def _ignore(self, rest: str) -> str:
        number, _, text = rest.partition(" ")
        if not number.isdecimal() or not text.strip():
            raise CommandError("ignore NUMBER COUNT: a breakpoint's number, and how often")
        count = max(evaluate(text, self._scope).number, 0)
        self._rows.ignore(int(number), count)
        self._changed()
        if not count:
            return f"Will stop next time breakpoint {number} is reached."
        crossings = f"{count} crossings" if count > 1 else "crossing"
        return f"Will ignore next {crossings} of breakpoint {number}."

    def _condition(self, rest: str) -> str:
        number, _, text = rest.partition(" ")
        if not number.isdecimal():
            raise CommandError("condition NUMBER [EXPRESSION]: a breakpoint's number comes first")
        self._rows.set_condition(int(number), text.strip())
        self._changed()
        return "" if text.strip() else f"Breakpoint {number} now unconditional."

    def _catch(self, rest: str) -> str:
        catches = self._motions.catches
        if rest:
            catches.choose([] if rest == "off" else rest.split())
        return f"caught: {', '.join(catches.kinds.values()) or 'nothing'}"

    def _seek(self, rest: str) -> Motion:
        if not rest.isdecimal():
            raise CommandError("seek TIME: nanoseconds since power-on, as the header shows them")
        return partial(self._motions.seek_time, int(rest))

    # -- looking ------------------------------------------------------------------------------

    def _backtrace(self, rest: str) -> str:
        count = evaluate(rest, self._scope).number if rest else None
        taken = self._boot.frames.take() if not self._boot.in_program else None
        if taken is None:
            found = self._boot.stacks.program_places(self._boot.stacks.registers(), 64)
            return "\n".join(f"#{n:<2} {at:#018x} in ?? ()" for n, at in enumerate(found))
        lines = list(taken.lines())
        if count is not None:
            lines = lines[:count] if count >= 0 else lines[count - 1 :]  # the end has a line, too
        return "\n".join(lines)

    def _print(self, rest: str) -> str:
        _, letter, text = _formatted(rest)
        value = self._scope.known(text) if text else self._scope.history(0)
        shown = self._printer.text(value, letter)
        if value.type.kind is TypeKind.VOID:
            return f"$0 = {shown}"
        self._scope.values.append(value)
        self._changed()  # an assignment may be among it
        return f"${len(self._scope.values)} = {shown}"

    def _output(self, rest: str) -> str:
        _, letter, text = _formatted(rest)
        return self._printer.text(self._scope.known(text), letter)

    def _examine(self, rest: str) -> str:
        count, letters, text = _formatted(rest)
        unit = next((_SIZES[one] for one in letters if one in _SIZES), 0)
        letter = next((one for one in letters if one not in _SIZES), "x")
        if text:
            self._next = self._address(text)
        if letter == "i":
            return self._instructions(count)
        unit = unit or (1 if letter in "cs" else 8 if letter == "a" else 4)
        found = []
        for line, end in lines_of(self._printer, self._next, count, letter, unit):
            found.append(line)
            self._next = end
        return "\n".join(found)

    def _address(self, text: str) -> int:
        """The address that an expression means."""
        return evaluate(text, self._scope).as_address % (1 << 64)

    def _instructions(self, count: int) -> str:
        arch, machine, found = self._boot.opened.arch, self._boot.machine, []
        for _ in range(count):
            code = machine.read(self._next, arch.insn_max)
            decoded = self._disassembler.decode(self._next, code)
            if not decoded:
                raise CommandError(f"Cannot access memory at address {self._next:#x}")
            mark = "=>" if self._next == machine.pc else "  "
            name = self._scope.symbol(self._next)
            at = f" <{name}>" if name else ""
            found.append(f"{mark} {self._next:#x}{at}:\t{decoded[0].text}")
            self._next += decoded[0].size
        return "\n".join(found)

    def _ptype(self, rest: str) -> str:
        _, letters, text = _formatted(rest)
        kind, _ = type_of(text, self._scope)
        return definition_of(kind, TypeFlags(offsets="o" in letters))

    def _whatis(self, rest: str) -> str:
        return f"type = {type_of(rest, self._scope)[0].text}"

    def _set(self, rest: str) -> str:
        text = re.sub(r"^var(iable)?\s+", "", rest)
        if "=" not in text:
            raise CommandError("set var EXPRESSION = VALUE: gdb's settings are not kept here")
        evaluate(text, self._scope)
        self._changed()
        return ""

    # -- info ---------------------------------------------------------------------------------

    def _infos(self) -> dict[str, Callable[[str], str]]:
        return {
            "breakpoints": self._info_breakpoints,
            "registers": self._info_registers,
            "symbol": self._info_symbol,
            "threads": self._told("info threads", self._info_tasks),
            "modules": self._told("info modules", self._info_modules),
            "hit": self._told(
                "info hit", lambda: self._tell_hit() or "The machine stands in no hit."
            ),
            "kprobes": self._told("info kprobes", self._info_kprobes),
        }

    def _info(self, rest: str) -> str:
        word, _, more = rest.partition(" ")
        infos = self._infos()
        found = [name for name in infos if name.startswith(word)] if word else []
        if len(found) != 1:
            raise CommandError(f"info {rest}: there are {', '.join(infos)}")
        return infos[found[0]](more.strip())

    def _info_breakpoints(self, rest: str) -> str:
        wanted = self._numbers(rest)
        lines = ["Num  Hits  Enb  Place"]
        for view in self._rows.views():
            if view.row.id not in wanted:
                continue
            on = "y" if view.row.enabled else "n"
            what = f"{view.event} " if view.event else ""
            lines.append(f"{view.row.id:<4} {view.hits:<5} {on:<4} {what}{view.place}")
            if view.only:
                lines.append(f"\t{view.only}")
        none = (
            f"No breakpoint, probe or watchpoint matching '{rest}'." if rest else "No breakpoints."
        )
        return "\n".join(lines) if len(lines) > 1 else none

    def _info_registers(self, rest: str) -> str:
        arch, machine = self._boot.opened.arch, self._boot.machine
        names = rest.replace("$", "").split()
        if not names:
            names = [one.name for one in arch.registers if one.group in ("general", "flags")]
        lines = []
        for name in names:
            if not machine.has_register(name):
                raise CommandError(f"Invalid register `{name}'")
            value = machine.register(name)
            named = self._places.text(value) if name == arch.roles.pc else str(value)
            lines.append(f"{name:<15}{value:<#19x}{named}")
        return "\n".join(lines)

    def _info_symbol(self, rest: str) -> str:
        address = self._address(rest)
        name = self._places.text(address)
        return f"{name}" if name != f"{address:#x}" else f"No symbol matches {rest}."

    def _info_tasks(self) -> str:
        current = self._boot.machine.task().pid
        lines = ["    PID   TGID S NAME"]
        for task in self._tasks.listed:
            mark = "*" if task.pid == current else " "
            lines.append(f"{mark} {task.pid:>5} {task.tgid:>6} {task.state} {task.comm}")
        return "\n".join(lines) if len(lines) > 1 else "the kernel has no tasks yet"

    def _info_kprobes(self) -> str:
        """The kernel's own kprobes, as its own list has them."""
        return "\n".join(self._boot.booted.kprobes()) or "The kernel has no kprobes."

    def _info_modules(self) -> str:
        modules = self._boot.machine.modules
        if modules is None:
            raise CommandError("the image does not tell where its modules are")
        modules.look()
        lines = [
            f"{module.functions[0].start:#x}  {module.name}"
            for module in modules.loaded.values()
            if module.functions
        ]
        return "\n".join(lines) or "no module is loaded"


def _formatted(rest: str) -> tuple[int, str, str]:
    """The count, the letters and the rest of `/NFU EXPRESSION`."""
    found = _FORM.fullmatch(rest)
    if found is None:
        return 1, "", rest
    return int(found[1] or 1), found[2], found[3]
