"""A list of the probes of a kernel that is booted, as `bpftrace -l` prints it."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from engine.errors import ProbeError
from engine.session.booted.files import BootFiles
from engine.session.booted.script.kernel_points import CODE, KERNEL, TIMERS, KernelPoints
from engine.session.booted.script.kernel_types import KernelTypes
from engine.session.booted.script.program_points import PROGRAMS
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.script.listing import SHORT, TIMES, is_type, type_lines
from engine.trace.bpftrace.attach_points import attach_point, has_glob
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span

_OF_KERNEL: Final = ("tracepoint", "rawtracepoint", *sorted(TIMERS), *sorted(CODE))
_KNOWN: Final = (*_OF_KERNEL, *sorted(PROGRAMS))
_WITH_MODULE: Final = frozenset({"fentry", "fexit"})


class KernelListing:
    """Lists the probes of one kernel."""

    def __init__(self, opened: OpenedKernel, files: BootFiles | None = None) -> None:
        """Set up; files are read when somebody asks.

        Args:
            opened: the kernel.
            files: of its system, as far as they are known.
        """
        self._points = KernelPoints(opened, files)
        self._types = KernelTypes(opened, self._points)

    def lines(self, pattern: str, *, verbose: bool) -> Iterator[str]:
        """The probes that a pattern means.

        Args:
            pattern: as attach points are written; "" for all; a glob without a provider is
                looked for in whole names.
            verbose: arguments follow each.

        Raises:
            ProbeError: there is no provider of that name.
        """
        if is_type(pattern):
            yield from type_lines(self._types, pattern, verbose=verbose)
            return
        provider, _, rest = pattern.partition(":")
        provider = SHORT.get(provider, provider) or "*"
        wanted = [each for each in _KNOWN if fnmatchcase(each, provider)]
        if not wanted and not rest and has_glob(pattern):
            for each in _OF_KERNEL:
                yield from self._of(each, "", verbose=verbose, whole=pattern)
            return
        if not wanted:
            raise ProbeError(self._types.provides(provider) or f"Invalid provider: '{provider}'")
        for each in wanted:
            if each in PROGRAMS and each != provider and not rest:
                continue  # which programs there are nobody has said
            yield from self._of(each, rest, verbose=verbose)

    def _of(self, provider: str, rest: str, *, verbose: bool, whole: str = "*") -> Iterator[str]:
        if provider in TIMERS:
            each = (f"{unit}:" for unit in TIMES)
            found = (f"{provider}:{one}" for one in each if fnmatchcase(one, rest or "*"))
            yield from (one for one in found if fnmatchcase(one, whole))
            return
        if provider in PROGRAMS and "/" not in rest.partition(":")[0] and ":" not in rest:
            raise ProbeError(f"{provider}:PATH:FUNC: which program is not said")
        parts = rest.split(":") if rest else ["*"]
        if provider in PROGRAMS and len(parts) < len(("path", "name")):
            parts.append("*")
        if provider == "tracepoint" and len(parts) < len(("group", "name")):
            parts.insert(0, "*")
        if provider in _WITH_MODULE and len(parts) == 1:
            parts.insert(0, KERNEL)
        text = ":".join((provider, *parts))
        point = attach_point(text, Span(0, 0), ScriptRemarks(ScriptText("-l", text)))
        if point is None:
            return
        for one in self._points.expanded(point):
            if not fnmatchcase(one.text, whole):
                continue
            yield one.text
            if verbose:
                yield from (f"    {each}" for each in self._types.described(one))
