"""The side of gdb's words that a guest under control asks and tells."""

from typing import Protocol

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import DisplayView, PartsView


class TypedWords(Protocol):
    """Carries lines of gdb's words out, and is told what else happens to the guest."""

    def words(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Names of all words, and what each does."""

    def carry_out(self, text: str) -> str:
        """Carry a line out; what it printed."""

    def moves(self, line: str) -> bool:
        """True if a line may let the guest move."""

    def begins_to_move(self) -> None:
        """The guest is about to move."""

    def moved(self) -> None:
        """It has moved."""

    def branched(self) -> None:
        """Another branch of the run is at hand."""

    def remark(self, row: int) -> str:
        """When a row of the list of probes stops the guest, in words."""

    def saved(self) -> tuple[cmd.SavedStop, ...]:
        """The stops that words know more of than the list of probes, for another session."""

    def restore(self, stops: tuple[cmd.SavedStop, ...]) -> list[str]:
        """Ask it again; what cannot be done, in words."""

    def displays(self) -> tuple[DisplayView, ...]:
        """The expressions that are shown at each stop."""

    def display_parts(self, branch: cmd.Branch) -> PartsView | None:
        """The value of one of them, and what is in it."""
