"""Verdicts on places: what `check` shows and what arming asks.

They go by the files, and by the memory of a guest where one is at hand.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules
from engine.arch.program import RecordLayout
from engine.arch.recording import Recording
from engine.errors import ImageError, ProbeError
from engine.fetch.types import beyond_linux
from engine.image import Symbol
from engine.image.headers import PF_X
from engine.insn.disasm import Disassembler
from engine.linux import vdso
from engine.probes.breakpoint import BREAKPOINT
from engine.probes.callwork import COUNTED, call_entry, call_work
from engine.probes.detourwork import not_worth, uncompiled
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import CORRUPTS, Check, Finding, Judgement, judge
from engine.probes.site import FunctionCode, ImageCode, InMemory, Site
from engine.probes.technique_kind import TechniqueConditions, TechniqueKind
from engine.probes.techniques import AUTO, TECHNIQUES, chosen
from engine.session.program.functions import function_at
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.lookup import ProgramLookup
from engine.session.program.places import Enclosing, Picked, Place, PlaceError, Places
from engine.trace.definition import Definition
from engine.trace.place_syntax import PERF_PREFIX, FileOffset, perf_command

if TYPE_CHECKING:
    from engine.session.program.markers import Markers
    from engine.session.program.outcomes import Surveyor
    from engine.session.program.perf_commands import PerfCommands
    from engine.session.program.plain_uprobes import PlainUprobes

_MARKER: Final = re.compile(r"\s*!?\s*(?:p\S*\s+)?(?:\S*:)?%")
"""Begins lines that may be about static probes."""
RETURN_ENTRY: Final = "return-entry"
"""Rule: a return kprobe goes on a function's entry (register_kretprobe)."""


FileMemory = Callable[[Place], InMemory | None]
"""A place's file as a guest's memory has it; None where it is not there."""


def _no_memory(place: Place) -> None:
    return None


def accepted_text(technique: str, how: str | None, reason: str) -> str:
    """The outcome for a place that a probe may stand on, as a line has it behind the place."""
    return f"{technique} {how}: {reason}"


def refused_text(reason: str, errno: str) -> str:
    """The same of one that is refused."""
    return f"rejected {reason} ({errno})"


class Placed(Struct, frozen=True, eq=False, dict=True):
    """A place and the verdict on it.

    Attributes:
        place: where.
        judgement: whether a probe may stand there, how and why.
        wish: for a jump there, or what is asked for in its place; None where nobody may have one.
        others: wishes for what is not asked for: what other eras of Linux make of a place.
    """

    place: Place
    judgement: Judgement
    wish: "JumpWish | None" = None
    others: "tuple[JumpWish, ...]" = ()

    @cached_property
    def eras(self) -> "tuple[tuple[str, tuple[Check, ...]], ...]":
        """Outcomes of each technique, in words, and the conditions.

        The one that is asked for comes first; none where no probe may stand.
        """
        if not self.judgement.ok or self.wish is None:
            return ()
        others = tuple((wish.title, wish.checks()) for wish in self.others)
        return ((self.wish.title, self.jump), *others)

    @cached_property
    def jump(self) -> tuple[Check, ...]:
        """The conditions of a jump, as far as the file tells; none where no probe may stand."""
        return self.wish.checks() if self.wish is not None and self.judgement.ok else ()

    @property
    def technique(self) -> str:
        """The technique that would plant it: "jump" (a breakpoint first), "breakpoint", ..."""
        if self.wish is None or not self.judgement.ok or self.lacks:
            return BREAKPOINT.stands
        return self.wish.kind.stands

    @property
    def outcome(self) -> str:
        """The outcome of all that, as a line has it behind the place."""
        found = self.judgement
        if found.ok:
            return accepted_text(self.technique, found.how, found.reason)
        return refused_text(found.reason, found.errno)

    @property
    def wished(self) -> str:
        """Name of what is asked for there: "jump"."""
        return self.wish.kind.stands if self.wish is not None else ""

    @cached_property
    def nearest_jump(self) -> int | None:
        """The nearest address for a jump in the function; None where none is known.

        Only asked where the place has none itself.
        """
        return self.wish.nearest() if self.wish is not None and self.lacks else None

    @cached_property
    def lacks(self) -> str:
        """Id of the first condition of a jump that the place does not meet.

        "" where it meets all of them, and where no probe may stand.
        """
        if self.wish is None or not self.judgement.ok:
            return ""
        if "jump" in self.__dict__:
            return next((check.rule for check in self.jump if not check.ok), "")
        return self.wish.failing()

    @property
    def no_jump(self) -> Check | None:
        """The first condition of a jump that the place does not meet."""
        return next((check for check in self.jump if not check.ok), None) if self.lacks else None


def _takes_all(place: JumpPlace) -> str:
    return ""


class JumpWish(Struct, frozen=True):
    """A jump that is wanted at a place, or what another technique puts there.

    Attributes:
        kind: of the technique.
        site: the place as the rules see it.
        refused: why none is asked for at all; None if one is.
        takes: says why a detour there could not do what is wanted, "" if it can.
        known: what `failing` says, where that is known.
    """

    kind: TechniqueKind
    site: Site
    refused: Check | None
    takes: Callable[[JumpPlace], str] = _takes_all
    known: str | None = None

    @property
    def _conditions(self) -> TechniqueConditions:
        assert self.kind.conditions is not None, "it replaces breakpoints"
        return self.kind.conditions

    @property
    def title(self) -> str:
        """The outcome at a place that meets them, in words."""
        return self._conditions.title

    def checks(self) -> tuple[Check, ...]:
        """All conditions, as far as the file tells."""
        if self.refused is not None:
            return (self.refused,)
        return self._conditions.checklist(self._place(self.takes))

    def failing(self) -> str:
        """Id of the first one that is not met, "" if all are."""
        if self.known is not None:
            return self.known
        if self.refused is not None:
            return self.refused.rule
        return self._conditions.failing(self._place(self.takes))

    def nearest(self) -> int | None:
        """The nearest place of the function that meets them, whatever is wanted there."""
        if self.refused is not None:
            return None
        for address in self._conditions.fitting(self._place(_takes_all)):
            if judge(replace(self.site, address=address)).ok:
                return address
        return None

    def _place(self, takes: Callable[[JumpPlace], str]) -> JumpPlace:
        site = self.site
        return JumpPlace(
            site.arch,
            site.address,
            site.rules,
            site.mode,
            site.code,
            site.function,
            unfit=takes,
        )


class Verdicts:
    """Judges places of one program."""

    def __init__(
        self,
        arch: Arch,
        program: Program,
        mode: Mode = Mode.STRICT,
        technique: str = AUTO,
        memory: FileMemory = _no_memory,
        picked: Picked | None = None,
    ) -> None:
        """Nothing is read before the first question.

        Args:
            arch: of the program.
            program: its files.
            mode: how strictly places are judged.
            technique: of probes, of `engine.probes.techniques.technique_names`.
            memory: of a guest, where one is at hand: the program, or its user, may have changed
                the code, and it is the changed code that is judged.
            picked: see `Places`.
        """
        self._memory = memory
        self._choice = chosen(technique)
        none = Check("technique", False, f"--technique {technique} asks for none")
        self._no_jumps = None if self._choice.replaces else none
        self._kind, self._others = _kinds(self._choice.kinds)
        self.places = Places(arch, program, picked)
        self.lookup = ProgramLookup(arch, program, self.places, mode)
        self._arch = arch
        self._program = program
        self._mode = mode
        self._decode = Disassembler(arch).decode
        self._codes: dict[tuple[str, int], ImageCode] = {}

    def perf_lines(self, command: str) -> list[str]:
        """The lines of uprobe_events that a command of perf probe stands for.

        Raises:
            ProbeError: it is none, has no place, or names what the kernel could not read.
        """
        return self._perf_commands.lines(command)

    @cached_property
    def _perf_commands(self) -> "PerfCommands":
        from engine.session.program.perf_commands import PerfCommands  # few definitions are

        return PerfCommands(self._program, self._arch, self._mode)

    @property
    def program(self) -> Program:
        """The files that it judges places of."""
        return self._program

    @property
    def main(self) -> ProgramFile:
        """The guest's own file."""
        return self._program.main

    @cached_property
    def markers(self) -> "Markers":
        """The program's static probes (USDT)."""
        from engine.session.program.markers import Markers  # few definitions are about them

        return Markers(self._arch, self._program)

    def spelled_out(self, line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines that a definition stands for, and remarks about what they leave out.

        One on static probes (USDT), and `perf: COMMAND`, which the kernel's rules do not know,
        stand for lines of uprobes; any other for itself.

        Raises:
            ProbeError: there is no such place, or nothing can be placed there.
        """
        if PERF_PREFIX in line and (command := perf_command(line, self._mode)) is not None:
            return tuple(self.perf_lines(command)), ()
        about = self._mode is Mode.STRICT and ("sdt" in line or _MARKER.match(line))
        found = self.markers.expanded(line) if about else None
        return ((line,), ()) if found is None else (found.lines, found.remarks)

    def judge(
        self,
        place: Place,
        *,
        mode: Mode | None = None,
        probed: bool = False,
        brief: bool = False,
        bias: int = 0,
        lacks: str | None = None,
    ) -> Placed:
        """The verdict on a place.

        Args:
            place: where.
            bias: of its file in memory: texts and addresses of the verdict are the guest's then.
            mode: another strictness than usual, for one place.
            probed: a probe stands there already.
            brief: conditions of jumps and remarks are looked at only when they are asked for.
            lacks: the condition of a jump that it does not meet, where that is known.
        """
        site = self.site(place, mode=mode, probed=probed, bias=bias)
        others = tuple(JumpWish(kind, site, None) for kind in self._others)
        wish = JumpWish(self._kind, site, self._no_jumps, known=lacks)
        placed = Placed(place, judge(site), wish, others)
        if not brief:
            _ = placed.jump, placed.judgement.findings
        return placed

    def site(
        self, place: Place, *, mode: Mode | None = None, probed: bool = False, bias: int = 0
    ) -> Site:
        """A place as the rules see it."""
        code = self._changed(place, bias) or self._code(place, bias)
        function, address = place.function, place.link + bias
        return Site(
            code=code,
            address=address,
            rules=place.rules,
            mode=mode or self._mode,
            function_range=function and (function[0] + bias, function[1]),
            symbol=code.stretch(address).symbol,
            probed=probed,
        )

    def of_definition(
        self, definition: Definition, rules: Rules | None = None, *, bare: bool = False
    ) -> tuple[Placed, ...]:
        """The verdicts on a definition's places; `!` lets the kernel's rules decide.

        None where the kernel takes a uprobe that can never be hit: it looks at the file only
        when code of it is mapped.

        Args:
            definition: what is to be placed.
            rules: other rules than its own.
            bare: nobody wants to know about jumps there: a million are placed without.

        Raises:
            PlaceError: there is no such place.
        """
        if self.unhit(definition):
            return ()
        if rules is None:
            found = self.lookup.places_read(definition.target, definition.place)
        else:
            found = self.places.of_target(definition.target, definition.place, rules)
        mode = Mode.KERNEL if definition.strict_override else None
        kernel = (mode or self._mode) is Mode.KERNEL
        if kernel and any(place.path == vdso.NAME for place in found):
            why = f"{definition.place}: Linux places no probe in the vDSO, which is in no file"
            raise PlaceError(why, "FILE_NOT_FOUND", "ENOENT")
        if bare:
            placed = tuple(Placed(place, judge(self.site(place, mode=mode))) for place in found)
        else:
            placed = tuple(self.judge(place, mode=mode, brief=True) for place in found)
            placed = tuple(self._asking_for(definition, placed, one, mode) for one in placed)
            placed = _told_of_fetches(definition, placed)
        if not definition.is_return:
            return placed
        return tuple(self._as_return(one, mode or self._mode) for one in placed)

    def _asking_for(
        self,
        definition: Definition,
        placed: tuple[Placed, ...],
        one: Placed,
        mode: Mode | None,
    ) -> Placed:
        """A verdict whose conditions of a jump are those of what is to be recorded there."""
        if one.wish is None:
            return one
        boosted = one.judgement.how == "boosted"

        def takes(there: JumpPlace) -> str:
            if self._choice.at_once or not boosted:
                return ""
            if definition.is_return and (mode or self._mode) is Mode.KERNEL:
                return not_worth("a return probe begins there")
            if definition.maxactive:
                return not_worth(COUNTED)
            try:
                args = self.at_one(definition, placed, one.place).args
            except ProbeError:
                return ""
            address = one.place.link
            layout = RecordLayout.of(args, returns=definition.is_return)
            wanted = Recording(1, layout, address, 0, address)
            if not definition.is_return:
                return not_worth(uncompiled(there.jumps, (wanted,), there.raw))
            entry = call_entry(call_work(self._arch, wanted), 0, 1, deeper=False)
            return not_worth(uncompiled(there.jumps, entry, there.raw))

        return replace(one, wish=replace(one.wish, takes=takes))

    def unhit(self, definition: Definition) -> str:
        """Say why a uprobe that the kernel's rules take will not be hit, "" for any other."""
        target = definition.target
        kernel = definition.strict_override or self._mode is Mode.KERNEL
        if not kernel or not isinstance(target, FileOffset):
            return ""
        never = "no code of that file is ever mapped from there; it will not be hit"
        try:
            file = self._program.at_path(target.path)
        except ImageError:
            return never
        if file is None:
            return ""
        size = file.image.size
        if target.offset > size:  # uprobe_register
            return f"it cannot be enabled (EINVAL), as the file ends at offset {size:#x}"
        link = file.image.vaddr_of(target.offset)
        segments = file.image.load_segments
        hit = link is not None and any(s.flags & PF_X and s.covers(link) for s in segments)
        return "" if hit else never

    def _as_return(self, placed: Placed, mode: Mode) -> Placed:
        """The verdict on a place for a return probe."""
        placed = self._with_damage(placed, mode)
        place = placed.place
        if place.rules is Rules.UPROBE or place.function is None:
            return placed
        start = place.function[0]
        pad = 0
        if self._arch.probes.skips_landing_pad:
            code = place.image.read_vaddr(start, self._arch.insn_max)
            pad = self._arch.probes.landing_pad(code)
        if place.link in (start, start + pad):
            return placed
        why = "a return probe goes on a function's entry"
        return _refused_return(placed, start, why, "EINVAL")

    def _with_damage(self, placed: Placed, mode: Mode) -> Placed:
        """The verdict with what Linux's trampoline damages there."""
        place, found = placed.place, placed.judgement
        if mode is Mode.STRICT:
            return placed
        from engine.session.program.return_places import spoiled_return  # for kernel mode only

        spoiled = spoiled_return(self._arch, place)
        if spoiled is None:
            return placed
        fault, why = spoiled
        message = f"Linux accepts it, but {fault.text()} ({fault.rule}): {why}"
        finding = Finding(CORRUPTS, "error", message)
        judged = replace(found, errors=(*found.errors, finding))
        return replace(placed, judgement=judged)

    def at_one(self, definition: Definition, placed: Sized, place: Place) -> Definition:
        """A definition with the arguments that hold at one of its places.

        Args:
            definition: the definition as it was written.
            placed: all of them.
            place: the one.

        Raises:
            ProbeSyntaxError: a variable cannot be fetched there.
        """
        if len(placed) == 1 or not definition.args:
            return definition
        return self.lookup.definition_at(definition, place)

    def of_functions(self, glob: str, rules: Rules = Rules.KPROBE) -> Iterator[Placed]:
        """The verdicts on the entries of functions; see `Places.matching`."""
        for place in self.places.matching(glob, rules):
            yield self.judge(place, brief=True)

    def of_all(self, rules: Rules = Rules.KPROBE) -> Iterator[Placed]:
        """The verdict on every instruction of every function of the guest's own file.

        Functions that lie over each other share their instructions: each address comes once.
        """
        surveyor = self._surveyor(rules)
        for place, code, function, first in self._functions(rules):
            lacks = surveyor.lacks(code, function)
            for address, lack in zip(function.starts, lacks, strict=True):
                if address >= first:
                    yield self.judge(place.at(address), brief=True, lacks=lack)

    def outcomes(
        self, rules: Rules = Rules.KPROBE
    ) -> Iterator[tuple[Place, list[tuple[int, str]]]]:
        """Outcomes of all of them by functions, (address, outcome), without the verdicts."""
        surveyor = self._surveyor(rules)
        for place, code, function, first in self._functions(rules):

            def site(address: int, place: Place = place) -> Site:
                return self.site(place.at(address))

            def judge(address: int, place: Place = place) -> str:
                return self.judge(place.at(address), brief=True).outcome

            yield place, surveyor.outcomes(code, function, first, site, judge)

    def _surveyor(self, rules: Rules) -> "Surveyor":
        from engine.session.program.outcomes import Surveyor  # for all of a program only

        return Surveyor(self._arch, rules, self._mode, self._kind, self._no_jumps)

    def _functions(self, rules: Rules) -> Iterator[tuple[Place, ImageCode, FunctionCode, int]]:
        """(a place at its start, code, the function, address of what no other has had) of all."""
        file = self._program.main
        done = 0
        for start, end, symbol in _ranges(file):
            around = Enclosing(
                rules,
                file.path,
                file.image,
                symbol.name,
                symbol.address,
                (start, end - start),
                file.paths,
                inode=file.inode,
            )
            place = Place(around, start, "")
            code = self._changed(place, 0) or self._code(place)
            yield place, code, code.function(start, end - start), done
            done = max(done, end)

    def plain_uprobes(self, place: Place) -> "PlainUprobes":
        """The places of a place's file that uprobes' strict rules accept without more ado."""
        from engine.session.program.plain_uprobes import PlainUprobes  # for many at once only

        def changed(there: Place) -> bool:
            return self._changed(there, 0) is not None

        file = self.file_of(place)
        return PlainUprobes(self._arch, file, self.code_of(file), self.places, changed)

    def instructions(self, place: Place) -> Iterator[Place]:
        """Every instruction of the function around a place."""
        if place.function is None:
            return
        start, size = place.function
        for address in self._code(place).function(start, size).starts:
            yield place.at(address)

    def begins_with(self, file: ProgramFile) -> bool:
        """True if a file is the program's or one of the libraries it begins with."""
        return file in self._program.files

    @property
    def assumed(self) -> Mapping[str, str]:
        """Paths that names of libraries were taken for; see `Program.assumed`."""
        return self._program.assumed

    def file_of(self, place: Place) -> ProgramFile:
        """The file that a place is in."""
        file = self._program.at_path(place.path)
        assert file is not None, "the place was found in it"
        return file

    def _changed(self, place: Place, bias: int) -> ImageCode | None:
        """The code of a place's file, if memory has other code around it; not kept."""
        in_memory = self._memory(place)
        start, size = place.function or (place.link, self._arch.insn_max)
        written = place.image.read_vaddr(start, size) if in_memory is not None else b""
        if in_memory is None or in_memory(start, written) == written:
            return None
        file = self.file_of(place)
        return ImageCode(self._arch, file.image, file.symbols, self._decode, bias, in_memory)

    def long_breakpoints(self) -> Iterator[tuple[ProgramFile, int]]:
        """Breakpoints of the program and its libraries that Linux's uprobes mistake."""
        if self._arch.probes.long_breakpoint:
            for file in self._program.files:
                for address in self.code_of(file).long_breakpoints:
                    yield file, address

    def _code(self, place: Place, bias: int = 0) -> ImageCode:
        return self._codes.get((place.path, bias)) or self.code_of(self.file_of(place), bias)

    def code_of(self, file: ProgramFile, bias: int = 0) -> ImageCode:
        """The code of a file as its rules see it; of each one file what is decoded is kept."""
        code = self._codes.get((file.path, bias))
        if code is None:
            code = ImageCode(self._arch, file.image, file.symbols, self._decode, bias)
            self._codes[file.path, bias] = code
        return code


def _kinds(asked: Iterable[TechniqueKind]) -> tuple[TechniqueKind, tuple[TechniqueKind, ...]]:
    """The technique whose conditions are asked, and those with other conditions.

    Args:
        asked: those of a user's choice; where none of them replaces breakpoints, the first of all
            that do is told of.
    """
    ranked = [kind for kind in (*asked, *TECHNIQUES) if kind.conditions is not None]
    found = {id(kind.conditions): kind for kind in reversed(ranked)}
    first = ranked[0]
    return first, tuple(kind for kind in found.values() if kind.conditions != first.conditions)


def _told_of_fetches(definition: Definition, placed: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """The verdicts, with what is said of arguments that Linux does not have."""
    why = beyond_linux(definition.args)
    if not why:
        return placed
    finding = Finding("beyond-linux", "info", why)

    def told(old: Judgement) -> Judgement:
        return replace(old, remark=lambda: (*old.remark(), finding))

    return tuple(replace(one, judgement=told(one.judgement)) for one in placed)


def _refused_return(placed: Placed, suggestion: int | None, why: str, errno: str) -> Placed:
    """A place refused for a return probe, whatever else is said about it."""
    finding = Finding(RETURN_ENTRY, "error", why, suggestion, errno)
    old = placed.judgement
    judgement = Judgement(False, None, why, errno, old.plan, (finding, *old.findings))
    return Placed(placed.place, judgement)


def _ranges(file: ProgramFile) -> Iterator[tuple[int, int, Symbol]]:
    """(start, end, symbol) of all functions; those without a size reach to the next."""
    symbols = (s for s in file.symbols.functions() if _is_executable(file, s.address))
    groups = [(start, list(group)) for start, group in groupby(symbols, lambda s: s.address)]
    for number, (start, group) in enumerate(groups):
        end = start + max(symbol.size for symbol in group)
        if end == start:
            section = next((s for s in file.image.sections if s.holds(start)), None)
            end = section.addr + section.size if section else file.image.high
            if number + 1 < len(groups):
                end = min(end, groups[number + 1][0])
        yield _first_insn(file, start), end, group[0]


def _first_insn(file: ProgramFile, start: int) -> int:
    """A function's first instruction; unwind ranges may begin before it."""
    function = function_at(file, start + 1)
    return start + 1 if function is not None and function[0] == start + 1 else start


def _is_executable(file: ProgramFile, address: int) -> bool:
    return any(s.flags & PF_X and s.covers(address) for s in file.image.load_segments)
