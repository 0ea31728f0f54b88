"""A condition on a run's end: a C expression over the program's variables as they are then."""

from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.image.reader import DamagedError
from engine.language import value_types as ct
from engine.language.evaluation import evaluator_of, tree_of
from engine.language.syntax import Expression
from engine.language.values import TypedValue, made
from engine.session.guest.session import Session
from engine.session.inspect.frame_scope import program_scope

_FACTS: Final = {
    "exit": "_exitcode",
    "signal": "_exitsignal",
    "clock": "_clock",
    "switches": "_switches",
}
"""Facts of a run that a condition can ask for besides the program, as gdb spells such things
(`$_exitcode`); the plain words mean them too, whatever the program calls so."""


class EndCondition:
    """A condition on the end of runs.

    Attributes:
        text: the condition as the user wrote it.
    """

    def __init__(self, text: str) -> None:
        """A condition of the user's."""
        self.text = text

    def met(self, session: Session, facts: tuple[int, int, int, int]) -> str | None:
        """Asks it of a run that has ended; the first process's memory is as it was then.

        Args:
            session: the run.
            facts: exit code, signal, clock and switches.

        Returns:
            None if it does not hold; "" if it does; why it cannot be said, where memory that it
            follows cannot be read: that is a reason to look, as a debugger's condition is.

        Raises:
            CommandError: it means nothing in this program.
        """
        given = {
            name: made(ct.LONG, fact, "little")
            for name, fact in zip(_FACTS.values(), facts, strict=True)
        }
        try:
            return "" if self._value(session, given).truth else None
        except GuestFaultError as error:
            return f"--stop-if {self.text}: cannot access memory at {error.address:#x}"
        except (CommandError, DamagedError) as error:
            raise CommandError(f"--stop-if {self.text}: {error}") from error

    def _value(self, session: Session, given: dict[str, TypedValue]) -> TypedValue:
        scope = program_scope(session, given)
        return evaluator_of(scope).value(_with_facts(tree_of(self.text, scope))).loaded()


def _with_facts(node: Expression) -> Expression:
    """An expression with the facts of the run for the words that mean them."""
    if node.kind == "name" and node.text in _FACTS:
        return Expression("dollar", f"${_FACTS[node.text]}")
    return replace(node, parts=tuple(map(_with_facts, node.parts)))
