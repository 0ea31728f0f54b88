"""The arguments of requests, as far as they are looked at."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

Count = Annotated[int, Meta(ge=0, le=1 << 20)]
Reference = Annotated[int, Meta(ge=0, lt=1 << 53)]
Near = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
"""A distance between addresses."""


class DapArguments(Struct, rename="camel"):
    """Arguments; those that nobody here knows are passed by."""


class NoArguments(DapArguments):
    """A request that needs none."""


class InitializeArguments(DapArguments):
    """The front end, and what it can do."""

    lines_start_at1: bool = True
    columns_start_at1: bool = True
    supports_invalidated_event: bool = False
    supports_memory_event: bool = False
    supports_styling: bool = field(name="supportsANSIStyling", default=False)


class LaunchArguments(DapArguments):
    """The guest, and how it is started.

    Attributes:
        program: the ELF file; that of the command line if "".
        args: its arguments.
        cwd: where it works.
        env: variables of its environment.
        options: of the command line: `--root`, `--seed`.
        core: a core file of it, to be looked at.
        stop_on_entry: it stands at its first instruction until the user lets it run.
        stop_at_main: it stands at the begin of main.
        record: one can go back in it.
        no_debug: it runs to its end, whatever breakpoints there are.
    """

    program: str = ""
    args: list[str] = []
    cwd: str = ""
    env: dict[str, str] = {}
    options: list[str] = []
    core: str = ""
    stop_on_entry: bool = False
    stop_at_main: bool = field(name="stopAtBeginningOfMainSubprogram", default=False)
    record: bool = False
    no_debug: bool = False


class RestartArguments(DapArguments):
    """Fresh arguments of `launch` to start with; none for the same again."""

    arguments: dict[str, Any] = {}


class DapSource(DapArguments, omit_defaults=True):
    """A source file.

    Attributes:
        name: to show.
        path: on the host.
        presentation_hint: "normal", "emphasize" or "deemphasize".
    """

    name: str = ""
    path: str = ""
    presentation_hint: str = ""


class WantedBreakpoint(DapArguments, kw_only=True):
    """Wishes that all kinds of breakpoints may have."""

    condition: str = ""
    hit_condition: str = ""


class SourceBreakpoint(WantedBreakpoint):
    """A line, or a logpoint there."""

    line: Annotated[int, Meta(ge=0, le=1 << 31)]
    log_message: str = ""


class FunctionBreakpoint(WantedBreakpoint):
    """A function, or any other place that `break` takes."""

    name: str


class InstructionBreakpoint(WantedBreakpoint):
    """An address."""

    instruction_reference: str
    offset: Near = 0


class DataBreakpoint(WantedBreakpoint):
    """Bytes of memory, as `dataBreakpointInfo` has named them."""

    data_id: str
    access_type: str = "write"


class SetBreakpointsArguments(DapArguments):
    """All breakpoints of a source file."""

    source: DapSource
    breakpoints: list[SourceBreakpoint] = []


class SetFunctionBreakpointsArguments(DapArguments):
    """All breakpoints of functions."""

    breakpoints: list[FunctionBreakpoint]


class SetInstructionBreakpointsArguments(DapArguments):
    """All breakpoints of instructions."""

    breakpoints: list[InstructionBreakpoint]


class SetDataBreakpointsArguments(DapArguments):
    """All breakpoints of data."""

    breakpoints: list[DataBreakpoint]


class DataBreakpointInfoArguments(DapArguments):
    """A variable or an expression that may be watched."""

    name: str
    variables_reference: Reference = 0
    frame_id: Reference = 0
    bytes: Annotated[int, Meta(ge=0, le=1 << 16)] = 0
    as_address: bool = False


class FilterOption(DapArguments):
    """A filter of exceptions, and what it is narrowed down to."""

    filter_id: str
    condition: str = ""


class SetExceptionBreakpointsArguments(DapArguments):
    """All filters of exceptions that are on."""

    filters: list[str] = []
    filter_options: list[FilterOption] = []


class BreakpointLocationsArguments(DapArguments):
    """Lines in which breakpoints may be."""

    source: DapSource
    line: int
    end_line: int = 0


class ThreadArguments(DapArguments):
    """A thread."""

    thread_id: Reference = 0


class StepArguments(ThreadArguments):
    """A thread, and how far it is to step."""

    granularity: str = "statement"


class GotoArguments(ThreadArguments):
    """A thread, and where it is to go on."""

    target_id: Reference = 0


class GotoTargetsArguments(DapArguments):
    """A line, where a thread may go on."""

    source: DapSource
    line: int


class StackTraceArguments(ThreadArguments):
    """A part of the stack of a thread; no levels are all."""

    start_frame: Count = 0
    levels: Count = 0


class FrameArguments(DapArguments):
    """A frame."""

    frame_id: Reference


class ValueFormat(DapArguments):
    """The manner of writing values."""

    hex: bool = False


class VariablesArguments(DapArguments):
    """A scope or a value to be opened.

    Attributes:
        variables_reference: the number of the scope or value.
        filter: "indexed" or "named" parts only; "" for all.
        start: number of the first one.
        count: of them, 0 for all.
        format: of values.
    """

    variables_reference: Reference
    filter: str = ""
    start: Count = 0
    count: Count = 0
    format: ValueFormat = field(default_factory=ValueFormat)


class SetVariableArguments(DapArguments):
    """A fresh value for a part of a scope or of a value."""

    variables_reference: Reference
    name: str
    value: str
    format: ValueFormat = field(default_factory=ValueFormat)


class EvaluateArguments(DapArguments):
    """An expression, or a line of words where the context is "repl"."""

    expression: str
    frame_id: Reference = 0
    context: str = ""
    format: ValueFormat = field(default_factory=ValueFormat)


class SetExpressionArguments(DapArguments):
    """A fresh value for what an expression leads to."""

    expression: str
    value: str
    frame_id: Reference = 0
    format: ValueFormat = field(default_factory=ValueFormat)


class CompletionsArguments(DapArguments):
    """A line of words that somebody types."""

    text: str
    column: int = 1


class SourceArguments(DapArguments):
    """A source file whose text is asked for."""

    source: DapSource = field(default_factory=DapSource)


class ModulesArguments(DapArguments):
    """A part of the list of modules."""

    start_module: Count = 0
    module_count: Count = 0


class DisassembleArguments(DapArguments):
    """Instructions around an address."""

    memory_reference: str
    instruction_count: Annotated[int, Meta(ge=0, le=1 << 14)]
    offset: Near = 0
    instruction_offset: Annotated[int, Meta(ge=-(1 << 14), le=1 << 14)] = 0


class ReadMemoryArguments(DapArguments):
    """Bytes of memory."""

    memory_reference: str
    count: Annotated[int, Meta(ge=0, le=1 << 24)]
    offset: Near = 0


class WriteMemoryArguments(DapArguments):
    """Fresh bytes of memory, in base64."""

    memory_reference: str
    data: str
    offset: Near = 0
    allow_partial: bool = False
