"""Words of a program that a shell may complete: functions, definitions, events, fields."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.errors import KprobeTuiError
from engine.session.browse import Browser
from engine.session.protocol.config import GuestConfig
from engine.trace import sched, syscalls
from engine.trace.definition import Definition, parse

if TYPE_CHECKING:
    from engine.session.tracing.script.completing import ScriptCompleter

_ANY: Final = "/bin/sh"
"""A program that is there on any machine, with the libraries that nearly all have."""
MOST: Final = 500
"""Words that are offered at most."""
_COMMON: Final = ("common_pid",)
_RETURNED: Final = ("__probe_func", "__probe_ret_ip")
_PLACED: Final = ("__probe_ip",)


class ProgramWords:
    """The words of one program; nothing of it is read before the first question."""

    def __init__(self, config: GuestConfig | None) -> None:
        """Of a guest; None where none is named yet."""
        self._config = config

    @cached_property
    def _browser(self) -> Browser | None:
        """The reader of its files; None for files that cannot be read."""
        try:
            return None if self._config is None else Browser(self._config)
        except (KprobeTuiError, OSError):
            return None

    def functions(self, typed: str) -> list[str]:
        """Functions whose names begin so: the program's own, and LIB:NAME of its libraries."""
        return list(islice(self._functions(typed), MOST))

    def _functions(self, typed: str) -> Iterator[str]:
        browser = self._browser
        if browser is None:
            return
        library, colon, beginning = typed.rpartition(":")
        found = sorted({match.name for match in browser.complete(beginning, 1 << 20)})
        if colon:
            yield from (name for name in found if name.startswith(f"{library}:{beginning}"))
            return
        yield from (name for name in found if ":" not in name and name.startswith(typed))
        heads = {name.partition(":")[0] for name in found if ":" in name} if typed else set()
        yield from (f"{head}:" for head in sorted(heads) if head.startswith(typed))

    def script(self, typed: str) -> list[str]:
        """Scripts of bpftrace that begin so."""
        if self._scripts is None:
            return []
        completion = self._scripts.script(typed)
        return [typed[: completion.start] + word for word in completion.words]

    def script_points(self, typed: str) -> list[str]:
        """Places of probes of such scripts that begin so."""
        return [] if self._scripts is None else self._scripts.points(typed)

    @cached_property
    def _scripts(self) -> "ScriptCompleter | None":
        """Completes scripts; where no guest is named yet, for libraries and system calls alone."""
        browser = self._browser or ProgramWords(GuestConfig(_ANY))._browser
        if browser is None:
            return None
        from engine.image.kernel.recognition import is_kernel  # few lines are scripts
        from engine.session.tracing.script.completing import ScriptCompleter

        opened = browser.opened
        kernel = opened.kernel is not None or is_kernel(opened.image)
        known = browser is self._browser
        return ScriptCompleter(browser.arch, browser.verdicts, is_kernel=kernel, is_known=known)

    def definitions(self, typed: str) -> list[str]:
        """Definitions of events that begin so."""
        scheduled = f"{sched.GROUP}:"
        if typed.startswith(scheduled):
            names = (f"{scheduled}{name}" for name in sched.BY_NAME)
            return [name for name in names if name.startswith(typed)]
        group, slash, _ = typed.partition("/")
        if slash and group in (sched.GROUP, syscalls.GROUP):
            return [name for name in self._kernel_events(group) if name.startswith(typed)][:MOST]
        heads = [f"{each}/" for each in (sched.GROUP, syscalls.GROUP)]
        found = [head for head in heads if head.startswith(typed)]
        if self._browser is not None:
            fitting = self._browser.complete_definition(typed, len(typed))
            found += [typed[: fitting.start] + word for word in fitting.words]
        return found

    def _kernel_events(self, group: str) -> list[str]:
        """The events of a group that need no definition."""
        if group == sched.GROUP:
            return [f"{group}/{name}" for name in sched.BY_NAME]
        known = self if self._config is not None else ProgramWords(GuestConfig(_ANY))
        browser = known._browser  # where no guest is named yet, this machine's calls
        calls = [] if browser is None else browser.kernel_names(group)
        return [f"{group}/sys_{kind}_{call}" for call in calls for kind in ("enter", "exit")]

    def events(self, lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Names of the events of definitions, as GROUP/NAME, with their fields."""
        found: dict[str, tuple[str, ...]] = {}
        for line in lines:
            group, _, name = line.strip().partition("/")
            if group == sched.GROUP:
                chosen = [each for each in sched.EVENTS if each in sched.matching(name)]
                for each in chosen:
                    found[f"{group}/{each.name}"] = tuple(field for field, _ in each.fields)
            elif group == syscalls.GROUP:
                found |= {each: self._call_fields(each) for each in self._matching(line.strip())}
            else:
                found |= self._defined(line)
        return {name: (*fields, *_COMMON) for name, fields in found.items()}

    def _matching(self, glob: str) -> list[str]:
        return [each for each in self._kernel_events(syscalls.GROUP) if fnmatchcase(each, glob)]

    def _call_fields(self, event: str) -> tuple[str, ...]:
        call = event.partition(f"/{syscalls.ENTER}")[2]
        if not call:
            return ("__syscall_nr", "ret")
        known = syscalls.arguments(call, False) or ()
        return ("__syscall_nr", *(each.name for each in known))

    def _defined(self, line: str) -> dict[str, tuple[str, ...]]:
        """The event of a line of `kprobe_events`; nothing for a line that is none."""
        browser = self._browser
        if browser is None:
            return {}
        try:
            found = parse(line, browser.arch, mode=Mode.STRICT, lookup=browser.verdicts.lookup)
        except KprobeTuiError:
            return {}
        if not isinstance(found, Definition):
            return {}
        fields = tuple(arg.name for arg in found.args)
        more = _RETURNED if found.is_return else _PLACED
        return {f"{found.group}/{found.event}": (*fields, *more)}
