"""The engine: runs ELF guests and everything that is done to them.

Layers, each importing only those below: `cli` and `worker` (a session in a thread of its own),
`session`, `trace` (definitions, events, formats), `probes` and `unwind`, `linux` (the guest's
kernel), `guest` (memory, modules, hooks), `fetch`, `cpu`, `image`, `insn`, `arch`, `errors`,
`escaping` (text of guests made harmless), `chapters` (the handbook). The terminal interface is a
client of `engine.session` and `worker` like the command line.

For programs of others there is `api`, whose names are here too: what `__all__` names keeps its
meaning from version to version, all else may change with any.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Guest, GuestFrame, GuestStop, RecordedEvent, open_guest
    from engine.errors import KprobeTuiError

__all__ = ["Guest", "GuestFrame", "GuestStop", "KprobeTuiError", "RecordedEvent", "open_guest"]


def __getattr__(name: str) -> Any:
    """Give names of `api` to whoever asks for one (PEP 562): layers need none of them."""
    if name == "KprobeTuiError":
        from engine.errors import KprobeTuiError

        return KprobeTuiError
    if name in __all__:
        from engine import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
