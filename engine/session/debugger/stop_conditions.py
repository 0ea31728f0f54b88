"""Conditions of stops, and other questions that are asked at their hits."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.language.evaluation import checked, evaluate, evaluator_of
from engine.language.printing import Printer
from engine.language.syntax import Expression
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.stops import UserBreakpoint, UserStop
from engine.session.inspect.frame_scope import FrameScope

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger


class StopConditions:
    """Gives stops their conditions, and asks them.

    Attributes:
        asking: a question is asked at a hit: the guest stays where it is.
    """

    def __init__(self, debugger: "Debugger") -> None:
        """Ask in the frames of a debugger's guest."""
        self._debugger = debugger
        self.asking = False

    def set(self, stop: UserStop, text: str, *, told: bool = True) -> None:
        """Stop only where an expression holds.

        Its names are looked for at each place of a breakpoint, which is passed by where they mean
        nothing; for other stops where the user looks.

        Args:
            stop: the breakpoint, watchpoint or catchpoint.
            text: the expression, "" for none.
            told: say where it means nothing; gdb is silent where a library brings a location.

        Raises:
            CommandError: it means nothing anywhere.
        """
        locations = stop.locations if isinstance(stop, UserBreakpoint) else []
        scopes = [self._debugger.scope_at(one.place) for one in locations]
        trees: list[Expression] = []
        troubles: list[str] = []
        anywhere = True
        for scope in (scopes or [self._debugger.guest_scope]) if text else ():
            try:
                tree = checked(text, scope)
            except CommandError as error:
                troubles.append(str(error))
                if len(troubles) == max(len(scopes), 1) and not trees:
                    raise
                continue
            troubles.append("")
            trees.append(tree)
            anywhere = anywhere and self._means_the_same(tree, scope)
        for number, one in enumerate(locations, 1):
            why = troubles[number - 1] if text else ""
            one.valid = not why
            if why and told:
                whole = f"{stop.number}.{number}" if stop.number else f"{number}"
                self._debugger.complain(
                    f"warning: failed to validate condition at location {whole}, disabling:"
                )
                self._debugger.complain(f"  {why}")
        stop.condition, stop.tree = text, trees[0] if trees else None
        stop.anywhere = bool(trees) and anywhere

    def _means_the_same(self, tree: Expression, scope: FrameScope) -> bool:
        """True if an expression is of variables that are the same things wherever it is asked."""
        if tree.kind in ("dollar", "scoped"):
            return False
        if tree.kind == "name":
            here, bare = scope.variable(tree.text), self._debugger.bare_scope.variable(tree.text)
            return here is not None and bare is not None and here.address == bare.address
        return all(self._means_the_same(part, scope) for part in tree.parts)

    def holds(self, stop: UserStop) -> bool:
        """A stop's condition, asked at its hit."""
        debugger, tree = self._debugger, stop.tree
        with self._asked():
            try:
                inner = debugger.frames.innermost_scope
                scope = debugger.bare_scope if stop.anywhere else inner()
                if tree is None:
                    return evaluate(stop.condition, scope).truth
                return evaluator_of(scope).value(tree).truth
            except TROUBLE as error:
                debugger.put("Error in testing breakpoint condition:")
                debugger.put(message(error))
                return True

    def texts_at_hit(self, expressions: Iterable[str]) -> list[str]:
        """Values of expressions at a hit, as `print` writes them, or why there is none."""
        with self._asked():
            scope = self._debugger.frames.innermost_scope()
            printer = self._debugger.frames.printer(scope)
            return [_text_of(printer, scope, one) for one in expressions]

    def at_hit(self, ask: Callable[[], object]) -> None:
        """Ask about the innermost frame at a hit, without a stop.

        Raises:
            KprobeTuiError: what was asked cannot be answered.
        """
        with self._asked():
            ask()

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """A question at a hit: frames are those of that moment meanwhile."""
        self._debugger.frames.moved()
        self.asking = True
        try:
            yield
        finally:
            self.asking = False
            self._debugger.frames.moved()


def _text_of(printer: Printer, scope: FrameScope, expression: str) -> str:
    try:
        return printer.text(evaluate(expression, scope))
    except TROUBLE as error:
        return f"<{message(error)}>"
