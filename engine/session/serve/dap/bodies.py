"""The bodies of answers and events."""

from msgspec import Struct
from msgspec.structs import replace

from engine.session.serve.dap.requests import DapSource


class DapBody(Struct, rename="camel", omit_defaults=True):
    """A body; members that say nothing are left out."""


class ExceptionFilter(DapBody, kw_only=True):
    """A filter that the user may turn on."""

    filter: str
    label: str
    description: str = ""
    default: bool = False
    supports_condition: bool = False
    condition_description: str = ""


class AdapterCapabilities(DapBody):
    """Requests that are answered."""

    supports_configuration_done_request: bool = False
    supports_function_breakpoints: bool = False
    supports_conditional_breakpoints: bool = False
    supports_hit_conditional_breakpoints: bool = False
    supports_evaluate_for_hovers: bool = False
    exception_breakpoint_filters: tuple[ExceptionFilter, ...] = ()
    supports_step_back: bool = False
    supports_set_variable: bool = False
    supports_goto_targets_request: bool = False
    supports_completions_request: bool = False
    supports_modules_request: bool = False
    supports_restart_request: bool = False
    supports_value_formatting_options: bool = False
    supports_exception_info_request: bool = False
    supports_delayed_stack_trace_loading: bool = False
    supports_loaded_sources_request: bool = False
    supports_log_points: bool = False
    supports_set_expression: bool = False
    supports_terminate_request: bool = False
    supports_data_breakpoints: bool = False
    supports_data_breakpoint_bytes: bool = False
    supports_read_memory_request: bool = False
    supports_write_memory_request: bool = False
    supports_disassemble_request: bool = False
    supports_breakpoint_locations_request: bool = False
    supports_clipboard_context: bool = False
    supports_stepping_granularity: bool = False
    supports_instruction_breakpoints: bool = False
    supports_exception_filter_options: bool = False


class CapabilitiesBody(DapBody):
    """AdapterCapabilities that have changed."""

    capabilities: AdapterCapabilities


class DapThread(DapBody):
    """A thread."""

    id: int
    name: str


class ThreadsBody(DapBody, omit_defaults=False):
    """All threads."""

    threads: list[DapThread]


class ThreadEventBody(DapBody):
    """A thread that has begun or ended."""

    reason: str
    thread_id: int


class StackFrame(DapBody, kw_only=True):
    """A frame; a line of 0 is none."""

    id: int
    name: str
    line: int
    column: int
    source: DapSource | None = None
    instruction_pointer_reference: str = ""
    module_id: str = ""
    presentation_hint: str = ""


class StackTraceBody(DapBody, omit_defaults=False):
    """A part of a stack, and how many frames it has."""

    stack_frames: list[StackFrame]
    total_frames: int


class DapScope(DapBody, kw_only=True):
    """A group of variables of a frame."""

    name: str
    variables_reference: int
    expensive: bool
    presentation_hint: str = ""
    named_variables: int = 0


class ScopesBody(DapBody, omit_defaults=False):
    """The scopes of a frame."""

    scopes: list[DapScope]


class DapVariable(DapBody, kw_only=True):
    """A variable, or a part of a value."""

    name: str
    value: str
    variables_reference: int
    type: str = ""
    evaluate_name: str = ""
    memory_reference: str = ""
    indexed_variables: int = 0


class VariablesBody(DapBody, omit_defaults=False):
    """The variables of a scope, or the parts of a value."""

    variables: list[DapVariable]


class ValueBody(DapBody, kw_only=True):
    """A value that was given to something."""

    value: str
    variables_reference: int
    type: str = ""
    memory_reference: str = ""
    indexed_variables: int = 0


class EvaluateBody(DapBody, kw_only=True):
    """The value of an expression, or the text that a line of words prints."""

    result: str
    variables_reference: int
    type: str = ""
    memory_reference: str = ""
    indexed_variables: int = 0


class DapBreakpoint(DapBody, kw_only=True):
    """A breakpoint as it is placed.

    Attributes:
        id: of it; 0 for one that could not be placed.
        verified: it stands somewhere.
        message: why it does not, or something else to be known.
        source: of its line.
        line: the source line at which the breakpoint stands.
        instruction_reference: its address.
        reason: "pending" or "failed".
    """

    verified: bool
    id: int = 0
    message: str = ""
    source: DapSource | None = None
    line: int = 0
    instruction_reference: str = ""
    reason: str = ""

    def at_line(self, line: int) -> "DapBreakpoint":
        """The same with its line as somebody else counts."""
        return replace(self, line=line)


class BreakpointsBody(DapBody, omit_defaults=False):
    """Breakpoints, in the order in which they were asked for."""

    breakpoints: list[DapBreakpoint]


class BreakpointEventBody(DapBody):
    """A breakpoint that has changed by itself."""

    reason: str
    breakpoint: DapBreakpoint


class DataBreakpointInfoBody(DapBody, omit_defaults=False):
    """The name of bytes that may be watched; None where that cannot be done."""

    data_id: str | None
    description: str
    access_types: list[str] = []


class BreakpointLocation(DapBody):
    """A line in which a breakpoint may be."""

    line: int


class BreakpointLocationsBody(DapBody, omit_defaults=False):
    """All of them."""

    breakpoints: list[BreakpointLocation]


class StoppedBody(DapBody, kw_only=True):
    """A stop."""

    reason: str
    thread_id: int
    all_threads_stopped: bool
    description: str = ""
    text: str = ""
    hit_breakpoint_ids: list[int] = []


class ContinuedBody(DapBody, omit_defaults=False):
    """A thread that runs, and whether all do."""

    thread_id: int
    all_threads_continued: bool = True


class ContinueBody(DapBody, omit_defaults=False):
    """The answer to a request to run on."""

    all_threads_continued: bool = True


class ExitedBody(DapBody, omit_defaults=False):
    """The end of the program."""

    exit_code: int


class OutputBody(DapBody, kw_only=True):
    """A text: of the program ("stdout", "stderr") or of ours ("console")."""

    output: str
    category: str = ""
    source: DapSource | None = None
    line: int = 0


class DapModule(DapBody, kw_only=True):
    """A file in the guest's memory."""

    id: str
    name: str
    path: str = ""
    symbol_status: str = ""
    address_range: str = ""


class ModulesBody(DapBody, omit_defaults=False):
    """A part of the list of modules, and how many there are."""

    modules: list[DapModule]
    total_modules: int


class ModuleEventBody(DapBody):
    """A module that has come or gone."""

    reason: str
    module: DapModule


class SourcesBody(DapBody, omit_defaults=False):
    """All source files."""

    sources: list[DapSource]


class SourceBody(DapBody):
    """The text of one."""

    content: str
    mime_type: str = ""


class DisassembledInstruction(DapBody, kw_only=True):
    """An instruction.

    Attributes:
        address: of it.
        instruction: as text.
        instruction_bytes: in hex.
        symbol: that begins there.
        location: its source file, where that is another one than before.
        line: in it.
        presentation_hint: "invalid" for what is none.
    """

    address: str
    instruction: str
    instruction_bytes: str = ""
    symbol: str = ""
    location: DapSource | None = None
    line: int = 0
    presentation_hint: str = ""


class DisassembleBody(DapBody, omit_defaults=False):
    """Instructions, by address."""

    instructions: list[DisassembledInstruction]


class ReadMemoryBody(DapBody):
    """Bytes in base64, and how many behind them cannot be read."""

    address: str
    unreadable_bytes: int = 0
    data: str = ""


class WriteMemoryBody(DapBody, omit_defaults=False):
    """The number of bytes that were written."""

    bytes_written: int


class ExceptionDetails(DapBody, kw_only=True):
    """More of a signal."""

    message: str = ""
    type_name: str = ""


class ExceptionInfoBody(DapBody, kw_only=True):
    """The signal that has stopped the program."""

    exception_id: str
    break_mode: str
    description: str = ""
    details: ExceptionDetails | None = None


class GotoTarget(DapBody, kw_only=True):
    """A place where a thread may go on."""

    id: int
    label: str
    line: int
    instruction_pointer_reference: str = ""


class GotoTargetsBody(DapBody, omit_defaults=False):
    """All of a line."""

    targets: list[GotoTarget]


class CompletionItem(DapBody, kw_only=True):
    """A word that may be typed.

    Attributes:
        label: the word as it is listed.
        detail: what it does.
        start: where what it takes the place of begins.
        length: of that.
    """

    label: str
    detail: str = ""
    start: int = 0
    length: int = 0


class CompletionsBody(DapBody, omit_defaults=False):
    """All of them."""

    targets: list[CompletionItem]


class InvalidatedBody(DapBody):
    """Areas of the front end that are stale."""

    areas: list[str]


class MemoryBody(DapBody, omit_defaults=False):
    """Memory that was changed."""

    memory_reference: str
    offset: int
    count: int
