"""All panes: a new one is a file in this folder and a line in `PANES`."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from msgspec import Struct

from engine.session.browse import Browser
from engine.session.protocol.rows import Names
from tui.panes.backtrace import BacktracePane
from tui.panes.code import CodePane
from tui.panes.console import ConsolePane
from tui.panes.events import EventLogPane
from tui.panes.functions import FunctionsPane
from tui.panes.graph import GraphPane
from tui.panes.histogram import HistogramPane
from tui.panes.machinery import MachineryPane
from tui.panes.memory import MemoryPane
from tui.panes.output import OutputPane
from tui.panes.probes import ProbesPane
from tui.panes.registers import RegistersPane
from tui.panes.threads import ThreadsPane
from tui.store import EventStore
from tui.widgets.pane import Pane

P = TypeVar("P", bound=Pane)


class PaneSources(Struct, frozen=True):
    """The things that panes show, besides the views that all of them get.

    Attributes:
        browser: the program's files.
        store: recorded events.
        names: names of addresses and threads.
    """

    browser: Browser
    store: EventStore
    names: Names


class PaneSpec(Struct, frozen=True):
    """A pane and its place in the layouts.

    Attributes:
        id: of the widget.
        key: goes to it.
        tab: its name where space is scarce.
        make: makes the widget.
        lower: whether it belongs to the lower half of the screen.
        chapter: of the handbook, which `?` shows there.
    """

    id: str
    key: str
    tab: str
    make: Callable[[PaneSources], Pane]
    lower: bool
    chapter: str


def _registers(sources: PaneSources) -> RegistersPane:
    """The registers, those first that say where the guest is."""
    roles = sources.browser.arch.roles
    return RegistersPane((roles.pc, roles.flags, roles.sp))


PANES: Final[tuple[PaneSpec, ...]] = (
    PaneSpec("code", "1", "Code", lambda s: CodePane(s.browser), False, "interface"),
    PaneSpec("registers", "2", "Regs", _registers, False, "history"),
    PaneSpec("backtrace", "3", "Back", lambda s: BacktracePane(), False, "words"),
    PaneSpec("machinery", "4", "Mach", lambda s: MachineryPane(s.browser), False, "techniques"),
    PaneSpec("memory", "5", "Mem", lambda s: MemoryPane(s.browser), False, "watching"),
    PaneSpec("events", "6", "Events", lambda s: EventLogPane(s.store), True, "filters"),
    PaneSpec("output", "7", "Output", lambda s: OutputPane(), True, "guests"),
    PaneSpec("probes", "8", "Probes", lambda s: ProbesPane(), True, "probes"),
    PaneSpec("graph", "9", "Graph", lambda s: GraphPane(s.store, s.names), True, "functions"),
    PaneSpec("console", "C", "Cons", lambda s: ConsolePane(), True, "words"),
    PaneSpec("histogram", "0", "Hist", lambda s: HistogramPane(), True, "filters"),
    PaneSpec("threads", "T", "Thr", lambda s: ThreadsPane(), True, "threads"),
    PaneSpec("functions", "V", "Func", lambda s: FunctionsPane(s.browser), True, "kernels"),
)
"""All of them, in the order of the tabs, in which they are told of a view."""


def chapter_of(pane: str) -> str:
    """The chapter of a pane by its id; the interface's own where there is no pane."""
    return next((spec.chapter for spec in PANES if spec.id == pane), "interface")


def by_id(pane: str) -> PaneSpec:
    """The line of a pane."""
    return next(spec for spec in PANES if spec.id == pane)


def by_key(key: str) -> PaneSpec | None:
    """The line of the pane with a key."""
    return next((spec for spec in PANES if spec.key == key), None)


class Panes:
    """The panes of one interface: all of them, and by name those that others speak to.

    Attributes:
        code: disassembly, with the cursor that most keys mean.
        registers: values, and who changed them.
        backtrace: frames.
        machinery: the hit at hand.
        memory: bytes of the guest.
        threads: threads and processes.
        events: the event log.
        output: the guest's terminal.
        probes: the list of probes.
        graph: calls and returns.
        console: what gdb's words have printed.
        histogram: tables of hist triggers.
        functions: those of the program or the kernel image.
    """

    def __init__(self, sources: PaneSources) -> None:
        """Make them."""
        self._panes: dict[str, Pane] = {}
        for spec in PANES:
            pane = self._panes[spec.id] = spec.make(sources)
            pane.id, pane.key = spec.id, spec.key
        self.code = self._one(CodePane)
        self.registers = self._one(RegistersPane)
        self.backtrace = self._one(BacktracePane)
        self.machinery = self._one(MachineryPane)
        self.memory = self._one(MemoryPane)
        self.threads = self._one(ThreadsPane)
        self.events = self._one(EventLogPane)
        self.output = self._one(OutputPane)
        self.probes = self._one(ProbesPane)
        self.graph = self._one(GraphPane)
        self.console = self._one(ConsolePane)
        self.histogram = self._one(HistogramPane)
        self.functions = self._one(FunctionsPane)

    def _one(self, kind: type[P]) -> P:
        return next(pane for pane in self if isinstance(pane, kind))

    def __iter__(self) -> Iterator[Pane]:
        """All panes, in the order of `PANES`."""
        return iter(self._panes.values())

    def __getitem__(self, pane: str) -> Pane:
        """A pane by its id."""
        return self._panes[pane]
