"""The catchers of returns that there are."""

from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.probes.owens import OWENS
from engine.probes.return_catcher import CatcherKind, ReturnCatcher
from engine.probes.return_sites import RETURN_SITES
from engine.probes.trampoline import LINUX_TRAMPOLINE

if TYPE_CHECKING:
    from engine.probes.return_probes import ReturnProbes

CATCHERS: Final[tuple[CatcherKind, ...]] = (RETURN_SITES, LINUX_TRAMPOLINE, OWENS)
"""All of them; where there is no page for a trampoline the first one that needs none is used."""

RETURNS: Final = ("auto", *(kind.name for kind in CATCHERS))
"""Names that a user may choose from; "auto": what is usual for the strictness."""


def catcher_kind(name: str, mode: Mode) -> CatcherKind:
    """The catcher that one of `RETURNS` means."""
    usual = next(kind for kind in CATCHERS if kind.usual_in is mode)
    return next((kind for kind in CATCHERS if kind.name == name), usual)


def catcher(host: "ReturnProbes", name: str, page: int) -> ReturnCatcher:
    """Set up what catches the returns of a guest.

    Args:
        host: the registry of return probes.
        name: one of `RETURNS`.
        page: of an engine window for a trampoline, 0 for none.

    Raises:
        CommandError: the architecture does not have that catcher.
    """
    kind = catcher_kind(name, host.target.mode)
    if kind.trampoline and not page:
        kind = next(kind for kind in CATCHERS if not kind.trampoline)
    return kind.build(host, page)
