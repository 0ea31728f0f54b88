"""The request of `bpftrace`: a script that runs on a guest."""

from collections.abc import Mapping

from msgspec import Struct

from engine.arch.plan import Mode
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import KernelChoice

FORMATS = ("text", "json")


class ScriptRequest(Struct, frozen=True):
    """A run of a guest with a script attached.

    Attributes:
        config: the guest.
        name: of the script's file; "stdin" for the text of -e.
        text: of the script.
        parameters: what `$1` and so on stand for, and named ones.
        environment: variables that set the script's config, BPFTRACE_*.
        format: one of `FORMATS`.
        output: file to write to, None for a stream.
        quiet: no word of how many probes there are.
        mode: strictness of placement.
        recorded: the run can be lived through again: a script may not change it.
        beside: others record the run, too: exit() ends it at the hit, not at the next call.
    """

    config: GuestConfig
    name: str
    text: str
    parameters: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    format: str = FORMATS[0]
    output: str | None = None
    quiet: bool = False
    mode: Mode = Mode.STRICT
    recorded: bool = False
    beside: bool = False


class BootScriptRequest(Struct, frozen=True):
    """A script that is attached to a kernel that is booted.

    Attributes:
        name: of the script's file; "stdin" for the text of -e.
        text: of the script.
        parameters: what `$1` and so on stand for, and named ones.
        environment: variables that set the script's config, BPFTRACE_*.
        format: one of `FORMATS`.
        output: file to write to, None for a stream.
        quiet: no word of how many probes there are.
        kernel: the rules that places are judged by.
        seed: of the script's random numbers.
    """

    name: str
    text: str
    parameters: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    format: str = FORMATS[0]
    output: str | None = None
    quiet: bool = False
    kernel: KernelChoice = KernelChoice()
    seed: int = 0
