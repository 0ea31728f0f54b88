"""`kprobe-tui GUEST`: the options of the terminal interface, which a layer above provides."""

import gc
import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.options import (
    BOOT,
    Command,
    boot_flag,
    config_of,
    lines_of,
    open_options,
    replay_options,
)
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.errors import CommandError
from engine.session import GuestConfig
from engine.session.protocol.config import (
    Mode,
    core_config,
    is_recorded_boot,
    recording_config,
)

_STEPS: Final = {"-x": "file", "--command": "file", "-ex": "command", "--eval-command": "command"}
STEPS_KEY: Final = "engine.cli.interface.steps"
"""The key of the words of --batch in a context: ("file", PATH) and ("command", LINE)."""
_IN_A_ROW: Final = 1.0
"""Seconds between two interrupts of which the second one ends the command."""


class InterfaceOptions(Struct, frozen=True):
    """Options of the interface as it is opened.

    Attributes:
        config: the guest; its name is "" to have the user pick a sample.
        definitions: lines of `kprobe_events` to place first.
        kernel_rules: place probes exactly as Linux would.
        ascii_only: draw with ASCII only.
        color: "auto", "always" or "never".
        fresh: do not restore probes and layout of the last time.
    """

    config: GuestConfig
    definitions: tuple[str, ...] = ()
    kernel_rules: bool = False
    ascii_only: bool = False
    color: str = "auto"
    fresh: bool = False


Interface = Callable[[InterfaceOptions], int]
"""Opens the interface; the exit code."""


class SteppedCommand(GroupedCommand):
    """Keeps the order of -x and -ex, which click would sort by name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take them out of the options, into `ctx.meta`.

        They end at GUEST, whose own arguments follow; a kernel has none.
        """
        mixed = self.context_settings.get("allow_interspersed_args", True)
        steps: list[tuple[str, str]] = []
        rest: list[str] = []
        words = iter(args)
        for word in words:
            name, given, value = word.partition("=")
            if word == "--" or not word.startswith("-") or word == "-":
                rest.append(word)
                if mixed and word != "--":
                    continue
                rest += words
                break
            if name in _STEPS:
                following = value if given else next(words, None)
                if following is None:
                    raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.")
                steps.append((_STEPS[name], following))
                continue
            rest.append(word)
            if not given:
                rest += [each for _, each in zip(range(_takes(self, name)), words, strict=False)]
        ctx.meta[STEPS_KEY] = tuple(steps)
        return super().parse_args(ctx, rest)


class InterfaceCommand(SwitchedCommand, SteppedCommand):
    """The interface, which is another command with --boot, and over a recorded boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_interface import interface_boot  # few guests are booted

        return interface_boot

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse a command line; a recorded boot is opened without the flag, too."""
        if BOOT not in args and is_recorded_boot(guest_word(args) or ""):
            return self.other.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command whose words were parsed: there is no group above that would."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


_FRONT: Final = (
    option(
        "-e",
        "definitions",
        multiple=True,
        metavar="DEF",
        help="Place a probe first.",
        group=Group.EVENTS,
    ),
    option(
        "--ascii", "ascii_only", is_flag=True, help="Draw with ASCII only.", group=Group.OUTPUT
    ),
    option(
        "--history/--no-history",
        default=True,
        help="Record the run, so that one can go back in it.",
        show_default=True,
        group=Group.GUEST,
    ),
    option(
        "--fresh",
        is_flag=True,
        help="Forget the probes and layout of the last time.",
        group=Group.GUEST,
    ),
)
_BATCH: Final = (
    option(
        "--batch",
        is_flag=True,
        help="Carry out gdb's words (-x, -ex), no interface.",
        group=Group.OTHERS,
    ),
    option(
        "-x",
        "--command",
        "files",
        metavar="FILE",
        help="With --batch: carry out the words in FILE.",
        group=Group.OTHERS,
    ),
    option(
        "-ex",
        "--eval-command",
        "words",
        metavar="CMD",
        help="With --batch: a word, as -ex 'break main'.",
        group=Group.OTHERS,
    ),
)


def front_options(command: Command) -> Command:
    """Add the options of what is placed first and how the screen begins."""
    for add in reversed(_FRONT):
        command = add(command)
    return command


def step_options(command: Command) -> Command:
    """Add the options that carry gdb's words out."""
    for add in reversed(_BATCH):
        command = add(command)
    return command


def _takes(command: click.Command, name: str) -> int:
    """Words that follow an option."""
    for each in command.params:
        if isinstance(each, click.Option) and name in each.opts and not each.is_flag:
            return each.nargs
    return 0


@click.command(cls=InterfaceCommand, context_settings={"allow_interspersed_args": False})
@front_options
@step_options
@boot_flag
@probe_options
@guest_probe_options
@replay_options
@open_options
@click.argument("guest", type=click.Path(), required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def interface(
    open_interface: Interface,
    /,
    definitions: tuple[str, ...],
    ascii_only: bool,
    fresh: bool,
    history: bool,
    mode_name: str,
    batch: bool,
    **values: Any,
) -> int:
    """Open GUEST in the terminal interface; without GUEST, pick one of the samples.

    GUEST may be a recording: then its run is lived through, and branches of it see what --root and
    --share show them beside the recording. A recorded boot goes again, with probes wherever you
    like.
    """
    context = click.get_current_context()
    steps = context.meta[STEPS_KEY]
    config = recording_config(opened_guest(context))
    if batch:
        return _batch(config, steps, mode_name)
    if steps:
        raise click.UsageError("-x and -ex go with --batch.")
    return open_interface(
        InterfaceOptions(
            replace(config, history=history or config.recording is not None),
            tuple(lines_of(definitions)),
            mode_name == "kernel",
            ascii_only,
            values["color"],
            fresh,
        )
    )


def opened_guest(context: click.Context) -> GuestConfig:
    """The guest that parsed words of the interface name; "" for none.

    Raises:
        CommandError: they contradict each other.
    """
    values = context.params
    return core_config(config_of({**values, "guest": values["guest"] or ""}))


def _batch(config: GuestConfig, steps: tuple[tuple[str, str], ...], mode_name: str) -> int:
    """Carry out gdb's words without the interface; the exit code is gdb's."""
    if not config.guest:
        raise click.UsageError("--batch needs a GUEST.")
    with _kept_for_good():
        from engine.cli.host import attached
        from engine.session import Session
        from engine.session.debugger.interpreter import batch  # as much as the interface itself

    def put(text: str) -> None:
        console.write(text)
        console.flush()

    def guard(session: Session, halt: Callable[[], None]) -> AbstractContextManager[None]:
        return attached(session, None, {signal.SIGINT: halt})

    return batch(config, steps, put, console.text, Mode(mode_name), guard, _interrupts)


@contextmanager
def _kept_for_good() -> Iterator[None]:
    """Load modules that stay: the collector does not look for garbage in them, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _interrupts(end: Callable[[], None]) -> Iterator[None]:
    """Listen to Ctrl-C while no guest moves: the second one in a row is Python's.

    Args:
        end: asks for the end of the word at hand.
    """
    heard = 0.0

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        before, heard = heard, time.monotonic()
        end()
        if heard - before < _IN_A_ROW:
            signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def guest_word(argv: list[str]) -> str | None:
    """The first word that is no option, which is GUEST or a subcommand: "" if there is none.

    None where help or the version is asked for.

    Args:
        argv: the command line.
    """
    command = interface.other if BOOT in argv else interface
    takes = {
        name: each.nargs if not each.is_flag else 0
        for each in command.params
        if isinstance(each, click.Option)
        for name in each.opts
    }
    words = iter(argv)
    for word in words:
        if word in ("-h", "--help", "--version", "-V", "--completion"):
            return None
        if not word.startswith("-") or word == "-":
            return word
        if word == "--":
            return next(words, "")
        name, given, _ = word.partition("=")
        if not given:
            for _ in range(takes.get(name, 0)):
                next(words, None)
    return ""


def ensure_guest(word: str, argv: list[str], subcommands: Collection[str]) -> None:
    """See that a GUEST is there, which may be a subcommand that is not spelled right.

    Args:
        word: names it.
        argv: the command line.
        subcommands: names of all.

    Raises:
        CommandError: nothing has that name.
    """
    if not word or "/" in word or os.path.lexists(word) or shutil.which(word):
        return
    if any(each.partition("=")[0] == "--root" for each in argv):
        return  # PATH is looked up there
    from difflib import get_close_matches  # nobody else here has a use for it

    near = get_close_matches(word, sorted(subcommands), 3)
    meant = f"did you mean {' or '.join(near)}?" if near else "'kprobe-tui help' lists subcommands"
    raise CommandError(f"{word}: no subcommand, no file here, no program in PATH; {meant}")
