"""Probes written in Python: the file of `--handlers`.

The file is an ordinary module with a list `probes` of `Kprobe`s (named by symbol or address)
and `Uprobe`s (by path and file offset), and of `Kretprobe`s and `Uretprobe`s likewise; these
classes and `guest`, the session, are there by name. A function `init()` runs before the guest
does and `exit()` after it has ended, as in a kernel module.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.arch.plan import Mode, Rules
from engine.errors import CommandError, CutOff, KprobeTuiError, ProbeError
from engine.probes.kprobe import Kprobe, ProbeFlags, Uprobe
from engine.probes.kretprobe import Kretprobe, Uretprobe
from engine.session.tracing.shared_process import (
    error_text,
    lines_in,
    named,
    share_process,
    shared_process,
)

_HANDLERS: Final = {
    "pre_handler": ("probe", "regs"),
    "post_handler": ("probe", "regs", "flags"),
    "entry_handler": ("instance", "regs"),
    "handler": ("instance", "regs"),
}

_TERMS: Final[dict[str, type]] = {
    "symbol_name": str,
    "offset": int,
    "addr": int,
    "flags": ProbeFlags,
    "rules": Rules,
    "mode": Mode,
    "data_size": int,
    "maxactive": int,
    "path": str,
    "place": int,
}
"""Types of what a probe is made with; where it may be left out None will do, too."""
_NEVER_RUN: Final[dict[str, Callable[[object], bool]]] = {
    "a coroutine": inspect.iscoroutinefunction,
    "a generator": inspect.isgeneratorfunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
}
_OFFSET_MOST: Final = 0xFFFFFFFF

if TYPE_CHECKING:
    from engine.session.guest.session import Session


def load_handlers(
    path: str,
    session: "Session",
    *,
    begin: bool = True,
    out: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Execute a file and register its probes.

    Args:
        path: of the file.
        session: the guest.
        begin: whether it is about to run: `init` is called.
        out: takes what `print` prints there, where the terminal belongs to somebody else.

    Returns:
        The module's names; its probes are `probes`.

    Raises:
        CommandError: the file cannot be read or fails, or has no probes.
        ProbeError: a probe cannot be placed.
    """
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"--handlers {path}: {error.strerror}") from error
    names: dict[str, Any] = {
        "__name__": "handlers",
        "__file__": path,
        "Kprobe": Kprobe,
        "Uprobe": Uprobe,
        "Kretprobe": Kretprobe,
        "Uretprobe": Uretprobe,
        "guest": session,
    }
    if out is not None:
        names["print"] = partial(_printed, out)
    share_process(path)
    try:
        exec(compile(source, path, "exec"), names)
    except CutOff:
        raise
    except BaseException as error:  # the file's own doing, whatever it is
        told = error_text(error, path)
        raise CommandError(f"--handlers {path}: {told}") from error
    probes = names.get("probes")
    if not isinstance(probes, list | tuple) or not probes:
        raise CommandError(f"--handlers {path}: it defines no list 'probes'")
    probing = session.probes()
    from engine.session.guest.wanted_probes import Wanted

    wanted: list[Wanted] = []
    for number, probe in enumerate(probes):
        if not isinstance(probe, Kprobe):
            raise CommandError(f"--handlers {path}: {probe!r} in 'probes' is no probe")
        if any(probe is other for other in probes[:number]):
            raise ProbeError(f"--handlers {path}: {probe} is in 'probes' twice (EINVAL)")
        _check_terms(path, probe)
        _check_handlers(path, probe)
        try:
            places = _places(probe, session)
        except (TypeError, ValueError) as error:  # a name, address or offset of the wrong type
            raise CommandError(f"--handlers {path}: the place of a probe: {error}") from error
        wanted += [Wanted(place, probe, anywhere=True) for place in places]
    for name in ("init", "exit"):
        if callable(names.get(name)):
            _check_call(path, name, names[name], ())
    probing.place(wanted)
    if begin and callable(names.get("init")):
        with blamed(path):
            names["init"]()
    if begin and callable(names.get("exit")):
        session.at_end.append(names["exit"])
    return names


def _printed(out: Callable[[str], object], *things: object, sep: str = " ", **_: object) -> None:
    """Python's `print`."""
    out(sep.join(map(str, things)))


@contextmanager
def blamed(path: str | None) -> Iterator[None]:
    """An error out of code of a handlers file becomes the user's, with its line.

    So does sys.exit there, which would pass for an exit of the guest, and KeyboardInterrupt,
    which would for one of the user's.

    Raises:
        CommandError: for such an error; others pass.
    """
    try:
        yield
    except (KprobeTuiError, CutOff):
        raise
    except BaseException as error:
        told = "" if path is None else blame(error, path)
        if not told:
            raise
        raise CommandError(told) from error


def blame(error: BaseException, path: str = "") -> str:
    """Why an error is the doing of a handlers file, with its line if it has one; "" if it is not.

    Args:
        error: the error as it was caught.
        path: of the file; the last one that was loaded if not given.
    """
    process = shared_process()
    path = path or (process.path if process is not None else "")
    if not path:
        return ""
    damage = process.damage(error) if process is not None else ""
    if lines_in(error, path):
        return f"--handlers {path}: {error_text(error, path)}"
    if damage:
        text = f"it has {damage}, which the engine cannot live with: {named(error)}"
        return f"--handlers {path}: {text}"
    return ""


def _check_terms(path: str, probe: Kprobe) -> None:
    """Refuse terms that C's types, or register_kprobe (kernel/kprobes.c), would not take."""
    for name, kind in _TERMS.items():
        value = getattr(probe, name, None)
        if value is not None and not isinstance(value, kind):
            raise CommandError(
                f"--handlers {path}: {name} of {type(probe).__name__}: {value!r} is no"
                f" {kind.__name__}"
            )
    if not 0 <= probe.offset <= _OFFSET_MOST:
        raise ProbeError(
            f"--handlers {path}: {probe}: offset is a number without sign of 32 bits (EINVAL)"
        )
    if isinstance(probe, Uprobe | Uretprobe):
        return
    if (probe.symbol_name is None) == (not probe.addr):  # an address of 0 is none, as in C
        raise ProbeError(
            f"--handlers {path}: a {type(probe).__name__} needs a symbol_name or an addr, and"
            " not both (EINVAL)"
        )


def _check_handlers(path: str, probe: Kprobe) -> None:
    """Handlers are refused that could not be called: there is no line to blame at a hit."""
    for name, given in _HANDLERS.items():
        handler = getattr(probe, name, None)
        if handler is not None:
            _check_call(path, f"{name} of {probe}", handler, given)


def _check_call(path: str, what: str, function: Any, given: tuple[str, ...]) -> None:
    for kind, found in _NEVER_RUN.items():
        if found(function):
            raise CommandError(f"--handlers {path}: {what}: it is {kind}: a call would not run it")
    try:
        inspect.signature(function).bind(*given)
    except ValueError:  # one of C, which does not say
        return
    except TypeError as error:
        raise CommandError(
            f"--handlers {path}: {what}: it is called with ({', '.join(given)}): {error}"
        ) from error


def _places(probe: Kprobe, session: "Session") -> "list[Any]":
    places = session.probes().verdicts.places
    if isinstance(probe, Uprobe | Uretprobe):
        return [places.resolve(f"{probe.path}:{probe.place:#x}")[0]]
    if probe.symbol_name is not None:
        name, probe.symbol_name = probe.symbol_name, None
        probe.name = probe.name or f"{name}+{probe.offset:#x}"
        found = places.resolve(f"{name}+{probe.offset:#x}" if probe.offset else name)
        return [found[0]]
    assert probe.addr is not None, "it was checked"
    return [places.resolve(f"{probe.addr + probe.offset:#x}")[0]]
