"""Definitions as the `kprobe_events` of an image's kernel would answer them."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.arch.base import Arch
from engine.errors import CommandError
from engine.fetch.dentry_types import DentryOffsets
from engine.fetch.era import Era, era_of
from engine.probes.kernel_places import KernelPlaces, KernelVerdict
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import KernelRow, row_of
from engine.trace.btf_scope import dentry_offsets
from engine.trace.kprobe_events import KPROBE_EVENTS, KprobeEvents, Outcome
from engine.trace.probed_kernel import ProbedKernel

if TYPE_CHECKING:
    from engine.image.kernel.btf import Btf

_INSTANCES: Final = 10
_OF_PLACES: Final = "kernel."
"""The beginning of the rules of places; definitions may have words of ours that no kernel has."""
_SOURCE: Final = re.compile(r"([^:\s]+\.(?:[chSs]|rs|cc|cpp|inc)):(\d{1,9})(%return)?")
"""FILE:LINE; a module's name has no dot in it."""


class ImageKernel(ProbedKernel):
    """The kernel of an image, as far as probe definitions ask it.

    Attributes:
        judged: the verdict that was asked for last; None where none was.
    """

    def __init__(self, opened: OpenedKernel) -> None:
        """Nothing is read before the first question.

        Args:
            opened: the image.
        """
        self._opened = opened
        self.judged: KernelVerdict | None = None
        image = opened.image
        images = (image.kernel, image, *(each.image for each in opened.loaded))
        self._images = [each for each in images if each is not None]

    @property
    def arch(self) -> Arch:
        """The kernel's architecture."""
        return self._opened.arch

    @cached_property
    def era(self) -> Era:
        """The rules of its version."""
        return era_of(self._opened.version)

    @property
    def types(self) -> "tuple[Btf, ...]":
        """The kernel's types, and those of a module."""
        return self._opened.types

    @cached_property
    def dentry(self) -> DentryOffsets | None:
        """Members that `%pd` and `%pD` look at."""
        return dentry_offsets(self.types)

    @property
    def instances(self) -> int:
        """Instances of a return probe that does not say."""
        return _INSTANCES

    def addresses(self, name: str, module: str | None) -> Sequence[int]:
        """Addresses of all symbols of a name, in the kernel ("" as `module`) or a module."""
        found: list[int] = []
        for image in self._images:
            if module is None or module == (image.module if image.is_module else ""):
                found += image.names.all_of(name)
        return found

    def has_module(self, name: str) -> bool:
        """True for a module that is loaded, or that the image is."""
        return any(image.is_module and image.module == name for image in self._images)

    def covering(self, address: int) -> tuple[int, int] | None:
        """[start, end) of the symbol around an address."""
        for image in self._images:
            if image.is_module:
                if not image.holds(address):
                    continue
            elif not self._is_kernel(address):
                continue
            found = image.names.at(address)
            return None if found is None else (found.start, found.end)
        return None

    def _is_kernel(self, address: int) -> bool:
        """True for the addresses that have names (is_ksym_addr): text, and data if kept."""
        names = self._images[0].names
        low, high = names.find("_stext"), names.find("_end")
        if low is not None and high is not None:
            return low <= address < high
        text, init = self._opened.tables.text, self._opened.tables.gone
        return any(low <= address < high for low, high in (*text, *init))

    def at_entry(self, start: int, offset: int) -> bool:
        """True if so many bytes behind a symbol's start count as the function's entry."""
        return start + offset in (start, self._places(start).entry(start))

    def _places(self, address: int) -> KernelPlaces:
        """Judges the addresses of the image or module that has one."""
        return self._opened.at(address).places

    def notrace(self, address: int) -> bool:
        """True if events may not probe the function around an address."""
        places = self._places(address)
        untraced = places.untraced(address)
        if untraced:
            self.judged = places.event(address)
        return untraced

    def traced_names(self) -> Sequence[str]:
        """Names of the functions that ftrace knows."""
        found = [self._images[0].names.at(site) for site in self._opened.tables.ftrace]
        return [each.name for each in found if each is not None]

    def register(self, address: int, *, is_return: bool) -> str:
        """Name of the error with which register_kprobe refuses a place; "" for none."""
        self.judged = self.verdict(address, is_return=is_return)
        refusal = self.judged.refusal
        return "" if refusal is None else refusal.errno

    def verdict(self, address: int, *, is_return: bool) -> KernelVerdict:
        """The verdict on a place of an event."""
        places = self._places(address)
        return places.returning(address) if is_return else places.event(address)

    def has_event(self, group: str, name: str) -> bool:
        """True if the kernel itself has an event of that group and name."""
        return self._opened.events.has(group, name)

    def tracepoint(self, name: str) -> str | None:
        """The function that BTF describes a tracepoint's arguments by; None for no such one."""
        return self._opened.events.tracepoint(name)


def defined_rows(
    opened: OpenedKernel, lines: Sequence[str], *, sequence: bool, file: str = KPROBE_EVENTS
) -> Iterator[KernelRow]:
    """A row for each line, in order.

    Args:
        opened: the image.
        lines: definitions.
        sequence: they build on each other; else each meets a kernel without events.
        file: that they are written to: KPROBE_EVENTS, or DYNAMIC_EVENTS.

    Raises:
        CommandError: later: a FILE:LINE is not found.
    """
    kernel = ImageKernel(opened)
    events = KprobeEvents(kernel)
    for line in (written.removesuffix("\n") for written in lines):
        if not sequence:
            events = KprobeEvents(kernel)
        kernel.judged = None
        for placed in placed_lines(opened, line):
            kernel.judged = None
            yield _row(opened, kernel, line, events.take(placed, file))


def refusals(opened: OpenedKernel, lines: Sequence[str]) -> Iterator[str]:
    """Definitions whose places the image's own kernel refuses, each with the reason.

    Args:
        opened: the image.
        lines: definitions that are right as such; selections of events are left out.
    """
    wanted = [line for line in lines if line.lstrip()[:1] in "pr" and " " in line.strip()]
    for row in defined_rows(opened, wanted, sequence=False):
        if row.errno and row.rule.startswith(_OF_PLACES):
            yield f"{row.line}: Linux {opened.era} refuses it ({row.errno}): {row.reason}"


def placed_lines(opened: OpenedKernel, line: str) -> tuple[str, ...]:
    """The line with SYM+OFF in place of FILE:LINE, once for each place that this means.

    No kernel understands FILE:LINE; a line that has none stays as it is.

    Raises:
        CommandError: there is no debug information, or no code for that line.
    """
    words = line.split(None, 2)
    match = _SOURCE.fullmatch(words[1]) if len(words) > 1 and words[0][:1] in "pr" else None
    if match is None:
        return (line,)
    file, number, suffix = match[1], int(match[2]), match[3] or ""
    addresses = opened.lines.addresses_of(file, number)
    if not addresses:
        why = f"no code for line {number} of a file of that name"
        if opened.lines.debug_image is None:
            why = "no debug information of this kernel is found; --debug-file FILE names it"
        raise CommandError(f"-e {line}: {file}:{number}: {why}")
    places: dict[str, str] = {}  # of a function the first one: a loop's head has several
    for address in addresses:
        name, start, _ = opened.names.bounds(address) or ("", 0, 0)
        single = name and opened.image.names.count(name) == 1
        place = f"{name}+{address - start:#x}".removesuffix("+0x0") if single else f"{address:#x}"
        places.setdefault(name or place, place + suffix)
    rest = words[2:]
    return tuple(" ".join([words[0], place, *rest]) for place in places.values())


def _row(opened: OpenedKernel, kernel: ImageKernel, line: str, outcome: Outcome) -> KernelRow:
    address = outcome.address
    definition = outcome.definition
    verdict = None
    if address is not None and definition is not None and definition.kind == "kprobe":
        verdict = kernel.verdict(address, is_return=definition.is_return)
    elif outcome.error is not None and kernel.judged is not None and not kernel.judged.ok:
        verdict = kernel.judged
    place = verdict.address if address is None and verdict is not None else address
    where = opened if place is None else opened.at(place)
    return row_of(where, address, verdict, line=line, outcome=outcome)
