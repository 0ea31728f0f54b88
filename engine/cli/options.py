"""Options of guests, which nearly all subcommands share, and what they stand for."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

import click

from engine.cli import console
from engine.cli.grouped import Group, option
from engine.cli.scripts import GuestStart, found_by_path, hidden, interpreted
from engine.errors import CommandError
from engine.session.protocol.config import (
    DEFAULT_MEMORY,
    GUEST_CPUS,
    PLAIN,
    USUAL_CPU,
    GuestConfig,
    TurnKind,
    recorded_turns,
    turns_of,
)
from engine.session.protocol.kernels import KernelChoice, Patched

Command = TypeVar("Command", bound=Callable[..., Any])
_PASSED: Final = frozenset(("PATH", "LANG", "TERM", "TZ", "HOME", "USER", "COLUMNS", "LINES"))
"""Variables that a guest gets unless told otherwise: what programs need, and nothing that could
be a secret."""
_PAGE_DRIVER: Final = "textual.drivers.web_driver:WebDriver"
_OF_PAGE: Final = (
    *("COLUMNS", "ROWS", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_DRIVER", "TEXTUAL_FPS"),
    *("TERM_PROGRAM", "TERM_PROGRAM_VERSION"),
)
"""Variables by which textual-serve starts an interface: none of them is the user's."""
_LEAST_MEMORY: Final = 1 << 14
_MOST: Final = 1 << 62
"""Of blocks and bytes: more than any run comes to."""
_COERCED: Final = ("C.UTF-8", "C.utf8", "UTF-8")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Bytes of a size with an optional unit: 512M, 2G."""
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text, re.IGNORECASE | re.ASCII)
    found = int(match[1]) * _UNITS[match[2].upper()] if match is not None else 0
    if found < _LEAST_MEMORY:
        raise click.BadParameter(f"{text!r} is not a size such as 512M or 2G, from 16K on")
    return min(found, _MOST)


def seconds(text: str) -> float:
    """A positive number of seconds; more than the host can wait for become all it can."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise click.BadParameter(f"{text!r} is not a positive number of seconds")
    return min(value, threading.TIMEOUT_MAX)


def share(text: str) -> tuple[str, bool]:
    """PATH or PATH:rw, as the path and whether the guest may write there."""
    if text.endswith(":rw") and not os.path.exists(text):
        return text[:-3], True
    return text, False


def moment(text: str) -> int:
    """A time in nanoseconds since 1970: `now`, @SECONDS or an ISO 8601 time."""
    import datetime  # costs a millisecond, and few runs name a time

    second = 10**9
    value = -1
    if text == "now":
        value = time.time_ns()
    elif (since := re.fullmatch(r"@(\d{1,10})(?:\.(\d{1,9}))?", text)) is not None:
        value = int(since[1]) * second + int((since[2] or "").ljust(9, "0"))
    else:
        with contextlib.suppress(ValueError):
            at = datetime.datetime.fromisoformat(text)
            at = at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC)
            epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
            value = (at - epoch) // datetime.timedelta(microseconds=1) * 1000
    if not 0 <= value < 1 << 62:
        raise click.BadParameter(f"{text!r} is not a time such as now, @1767225600 or 2026-01-31")
    return value


def turns(text: str) -> TurnKind:
    """A kind of turns."""
    found = turns_of(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is neither LOW-HIGH, as 10-300, nor priority:D/N")
    return found


timeout_option: Final = option(
    "--timeout", type=seconds, metavar="S", help="Stop after S seconds.", group=Group.LIMITS
)
_ENVIRONMENT: Final = (
    option(
        "--env",
        "env",
        metavar="K=V",
        multiple=True,
        help="Add to the environment.",
        group=Group.GUEST,
    ),
    option("--env-all", is_flag=True, help="Pass the whole environment on.", group=Group.GUEST),
    option(
        "--clean-env", is_flag=True, help="Start from an empty environment.", group=Group.GUEST
    ),
)
_ARGV0: Final = option(
    "--argv0", metavar="NAME", help="The program's name for itself.", group=Group.GUEST
)
color_option: Final = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Color in the engine's own messages.",
    group=Group.OUTPUT,
)
debug_option: Final = option(
    "--debug",
    is_flag=True,
    help="Show the engine's own figures and tracebacks.",
    group=Group.OUTPUT,
)
END_HELP: Final = "Tell the end and all remarks as a line of JSON, the last one on stderr."


def json_option(help: str = "Print JSON.") -> Callable[[Command], Command]:
    """The option that asks for JSON, as the parameter `as_json`; see `documents`."""
    return option("--json", "as_json", is_flag=True, help=help, group=Group.OUTPUT)


_MESSAGES: Final = (color_option, debug_option)
_FILES: Final = (
    option(
        "--root",
        metavar="DIR",
        help="This tree is the guest's whole file system.",
        group=Group.GUEST,
    ),
    option(
        "--share",
        "shares",
        type=share,
        multiple=True,
        metavar="PATH[:rw]",
        help="Show a host path to the guest; :rw lets it write there.",
        group=Group.GUEST,
    ),
)
_GUEST_OPTIONS: Final = (
    *_FILES,
    option(
        "--isolated",
        is_flag=True,
        help="Show the guest its own files and libraries only.",
        group=Group.GUEST,
    ),
    *_ENVIRONMENT,
    option(
        "--cwd", metavar="DIR", help="Working directory, a path of the guest.", group=Group.GUEST
    ),
    _ARGV0,
    option(
        "--printers",
        metavar="FILE.py",
        help="Functions in Python that say how values of types are shown.",
        group=Group.GUEST,
    ),
    option(
        "--seed",
        type=click.IntRange(min=0),
        help="Of all randomness, turns of threads included; 0, or that of --schedule.",
        group=Group.GUEST,
    ),
    option(
        "--cpus",
        type=click.IntRange(1, 256),
        default=1,
        metavar="N",
        help="Processors that the guest is told of; it runs on one, in turns.",
        group=Group.GUEST,
    ),
    option(
        "--guest-cpu",
        type=click.Choice(GUEST_CPUS),
        default=USUAL_CPU,
        show_default=True,
        help="Level of the guest's processor: v3 has AVX2, FMA and BMI.",
        group=Group.GUEST,
    ),
    option(
        "--random-seed",
        type=click.IntRange(min=0),
        metavar="N",
        help="Of the guest's random numbers alone; that of --seed if not given.",
        group=Group.GUEST,
    ),
    option(
        "--max-blocks",
        type=click.IntRange(min=1),
        help="Stop after N guest blocks.",
        group=Group.LIMITS,
    ),
    timeout_option,
    option(
        "--memory",
        type=size,
        metavar="SIZE",
        default=f"{DEFAULT_MEMORY >> 30}G",
        show_default=True,
        help="Memory of the guest: pages that it touches, files and buffers that it makes.",
        group=Group.LIMITS,
    ),
    option(
        "--clock",
        type=click.Choice(["guest", "host"]),
        default="guest",
        show_default=True,
        help="Whose time the guest sees: its own, which is deterministic, or the host's.",
        group=Group.GUEST,
    ),
    option(
        "--start",
        type=moment,
        metavar="TIME",
        help="When the guest's clock starts: now, @SECONDS, 2026-01-01[T12:00[:00]][Z|+01:00];"
        " if not given, now with a writable share, else next Monday.",
        group=Group.GUEST,
    ),
    *_MESSAGES,
    click.argument("guest", type=click.Path()),
    click.argument("args", nargs=-1, type=click.UNPROCESSED),
)


_TURNS: Final = option(
    "--turns",
    type=turns,
    metavar="LOW-HIGH",
    help="Turns of threads last so many of the guest's blocks [10000-30000]; or priority:D/N, as "
    "explore prints it.",
    group=Group.GUEST,
)
_SCHEDULE: Final = option(
    "--schedule",
    metavar="FILE",
    help="Threads take their turns as in this schedule.",
    group=Group.GUEST,
)
_RECORD: Final = option(
    "--record-schedule",
    metavar="FILE",
    help="Write the schedule of threads to a file.",
    group=Group.GUEST,
)


_ASKED_OPTIONS: Final = (
    option(
        "--module",
        "modules",
        multiple=True,
        type=click.Path(),
        help="Of a kernel image: this module counts as loaded; again and again.",
        group=Group.IMAGES,
    ),
    option(
        "--era",
        metavar="VERSION",
        help="Of a kernel image: judge by the rules of another version.",
        group=Group.IMAGES,
    ),
)
_NAMES_OPTIONS: Final = (
    option(
        "--debug-file",
        type=click.Path(),
        help="Of a kernel image: its vmlinux with debug information; found by build-id if it is "
        "where distributions put it.",
        group=Group.IMAGES,
    ),
    option(
        "--system-map",
        type=click.Path(),
        help="Of a kernel image: a System.map with names that kallsyms does not have.",
        group=Group.IMAGES,
    ),
)
_IMAGE_OPTIONS: Final = (
    option(
        "--kernel",
        "kernel",
        type=click.Path(),
        help="Of a module: the kernel image that it is for.",
        group=Group.IMAGES,
    ),
    *_NAMES_OPTIONS,
    option(
        "--cpu",
        metavar="CPU",
        default="golden",
        help="Of a kernel image: it boots on this CPU: golden, host, or a /proc/cpuinfo file.",
        group=Group.IMAGES,
    ),
    option(
        "--patched",
        type=click.Choice([each.value for each in Patched]),
        default=Patched.BOOT.value,
        help="Of a kernel image: its text as it patches itself at boot, or as the file has it.",
        group=Group.IMAGES,
    ),
)


BOOT: Final = "--boot"
boot_flag: Final = option(
    BOOT,
    "boots",
    is_flag=True,
    help="Boot GUEST, a kernel image, as a machine; its own options: --boot --help.",
    group=Group.IMAGES,
)


def names_options(command: Command) -> Command:
    """Add the options that say where names and lines of a kernel image are found."""
    for add in _NAMES_OPTIONS:
        command = add(command)
    return command


def names_choice(values: dict[str, Any]) -> KernelChoice:
    """Take these options out of a command's."""
    return KernelChoice(debug_file=values.pop("debug_file"), system_map=values.pop("system_map"))


def image_options(command: Command) -> Command:
    """Add the options that say how a kernel image is opened."""
    for add in _IMAGE_OPTIONS:
        command = add(command)
    return command


def kernel_options(command: Command) -> Command:
    """Add these, and those that say whose rules hold, and what is loaded."""
    command = image_options(command)
    for add in _ASKED_OPTIONS:
        command = add(command)
    return command


def kernel_choice(values: dict[str, Any], **more: bool) -> KernelChoice:
    """Take the options for kernel images out of a command's."""
    return KernelChoice(
        patched=Patched(values.pop("patched")),
        cpu=values.pop("cpu"),
        era=values.pop("era", None),
        kernel=values.pop("kernel"),
        debug_file=values.pop("debug_file"),
        system_map=values.pop("system_map"),
        modules=values.pop("modules", ()),
        **more,
    )


def replay_options(command: Command) -> Command:
    """Add what says in what order threads run."""
    return _SCHEDULE(_TURNS(command))


def schedule_options(command: Command) -> Command:
    """Add what says in what order threads run, and where to write it."""
    return _SCHEDULE(_RECORD(_TURNS(command)))


def guest_options(command: Command) -> Command:
    """Add the options of every subcommand that runs a guest."""
    command = image_options(command)
    for add in reversed(_GUEST_OPTIONS):
        command = add(command)
    return command


def machine_options(command: Command) -> Command:
    """Add the options of subcommands that start GUEST on this machine, if one is named."""
    command = image_options(command)
    for add in reversed(
        (
            *_ENVIRONMENT,
            option("--cwd", metavar="DIR", help="Its working directory.", group=Group.GUEST),
            _ARGV0,
            *_MESSAGES,
            click.argument("guest", type=click.Path(), required=False),
            click.argument("args", nargs=-1, type=click.UNPROCESSED),
        )
    ):
        command = add(command)
    return command


_NO_GUEST: Final[dict[str, Any]] = {
    "root": None,
    "shares": (),
    "isolated": False,
    "seed": None,
    "random_seed": None,
    "max_blocks": None,
    "memory": DEFAULT_MEMORY,
    "cpus": 1,
    "guest_cpu": USUAL_CPU,
    "clock": "guest",
    "start": None,
}
"""Values of what `machine_options` leave out."""


def machine_config(values: dict[str, Any]) -> GuestConfig:
    """The configuration that parsed `machine_options` stand for."""
    return config_of({**_NO_GUEST, **values}, kernel=kernel_choice(values))


def config_of(values: dict[str, Any], **more: Any) -> GuestConfig:
    """The configuration that parsed options stand for."""
    if "kernel" not in more:
        more["kernel"] = kernel_choice(values)
    for entry in values["env"]:
        if "=" not in entry:
            raise click.UsageError(f"--env {entry}: not of the form K=V")
    given = dict(entry.split("=", 1) for entry in values["env"])
    if values["env_all"] and values["clean_env"]:
        raise click.UsageError("--env-all and --clean-env: one of them")
    base = {
        name: value
        for name, value in _environment().items()
        if values["env_all"] or name in _PASSED or name.startswith("LC_")
    }
    if values["clean_env"]:
        base = {}
    blocks = values["max_blocks"]
    kind: TurnKind = values.get("turns") or PLAIN
    seed = values["seed"] or 0
    if (path := values.get("schedule")) is not None:
        if values["turns"] is not None:
            raise click.UsageError("--schedule and --turns: one of them")
        recorded = recorded_turns(path)
        kind = recorded
        if values["seed"] is None:
            seed = recorded.schedule.seed or 0
    env = tuple(f"{key}={value}" for key, value in {**base, **given}.items())
    root = values["root"]
    asked = GuestStart(values["guest"], values["args"], values["argv0"], values["shares"])
    other = hidden(asked.guest, root)
    if other is not None:
        console.remark(f"{asked.guest} is the file here, not {other}")
    start = interpreted(found_by_path(asked, root), root, isolated=values["isolated"])
    return GuestConfig(
        guest=start.guest,
        args=start.args,
        argv0=start.argv0,
        root=root,
        shares=start.shares,
        isolated=values["isolated"],
        env=env,
        cwd=values["cwd"],
        printers=values.get("printers"),
        seed=seed,
        random_seed=values["random_seed"],
        turns=kind,
        record_schedule=values.get("record_schedule"),
        max_blocks=None if blocks is None else min(blocks, _MOST),
        memory=values["memory"],
        cpus=values["cpus"],
        guest_cpu=values["guest_cpu"],
        clock=values["clock"],
        start=_first_moment(values, start.shares),
        technique=values.get("technique", "auto"),
        returns=values.get("caught_by", "auto"),
        follow=values.get("follow", "yes") == "yes",
        **more,
    )


def _first_moment(values: dict[str, Any], shares: Iterable[tuple[str, bool]]) -> int | None:
    """When the guest's clock starts, as `GuestConfig.start` has it.

    No file of the host's may lie in the guest's future, so that their times can be shown as they
    are: programs compare them with what they noted of them (git's index, Python's caches). The
    same moment for a whole week keeps runs the same; a later one would find certificates
    expired. What is written to a share stays, and must not be of the future: there the clock is
    the host's when it starts.
    """
    if values["start"] is not None or values["clock"] == "host":
        return cast(int | None, values["start"])
    if any(writable for _, writable in shares):
        return time.time_ns() + 10**9  # a second, as times in the last one before are not exact
    if values["root"] is not None or values["isolated"]:
        return None
    days = time.time_ns() // 10**9 // 86_400
    next_monday = days + 7 - (days + 3) % 7  # day 0 was a Thursday
    return next_monday * 86_400 * 10**9


def is_in_page() -> bool:
    """True if not a terminal shows the interface, but a page of `serve --web`."""
    return os.environ.get("TEXTUAL_DRIVER") == _PAGE_DRIVER


def _environment() -> dict[str, str]:
    """The environment as the user has it.

    In the C locale Python sets LC_CTYPE for itself when it starts (PEP 538), which would make
    another locale of the guest's.
    """
    found = dict(os.environ)
    if is_in_page():
        for name in _OF_PAGE:
            found.pop(name, None)
    plain = not found.get("LC_ALL") and found.get("LANG", "") in ("", "C", "POSIX")
    if plain and found.get("LC_CTYPE") in _COERCED:
        with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del found["LC_CTYPE"]
    return found


def program_options(command: Command) -> Command:
    """Add the options of subcommands that look at a guest without running it."""
    for add in reversed(_GUEST_OPTIONS[:-2]):
        command = add(command)
    return command


def file_options(command: Command) -> Command:
    """Add what says which of this machine's files a guest sees."""
    for add in reversed(_FILES):
        command = add(command)
    return command


def open_options(command: Command) -> Command:
    """Add what says how a guest is started, but not which."""
    command = image_options(command)
    for add in reversed([each for each in _GUEST_OPTIONS[:-2] if each is not timeout_option]):
        command = add(command)
    return command


def lines_of(definitions: tuple[str, ...]) -> Iterator[str]:
    """The lines of -e options, with those of files in their places.

    An option of several lines is as many writes to the kernel's file.
    """
    for given in definitions:
        if not given.startswith("@"):
            yield from given.split("\n")
            continue
        try:
            with open(given[1:], encoding="utf-8", errors="surrogateescape") as file:
                yield from file
        except OSError as error:
            raise CommandError(f"-e {given}: {error.strerror}") from error
