"""Values that the user keeps: the value history and convenience variables (gdb/value.c)."""

from collections.abc import Callable, Mapping

from engine.language.convenience_functions import ConvenienceFunction
from engine.language.values import TypedValue


class KeptValues:
    """The value history and the convenience variables of one debugger.

    Attributes:
        history: the values that were printed, `$1` first.
        variables: the user's own, by name without the dollar.
        computed: variables whose value is asked for each time.
        functions: convenience functions.
    """

    def __init__(
        self,
        functions: Mapping[str, ConvenienceFunction],
        computed: Mapping[str, Callable[[], TypedValue]],
    ) -> None:
        """Keep nothing yet.

        Args:
            functions: convenience functions.
            computed: variables whose value is asked for each time.
        """
        self.history: list[TypedValue] = []
        self.variables: dict[str, TypedValue] = {}
        self.functions, self.computed = functions, computed

    def remember(self, value: TypedValue) -> int:
        """Keep a printed value as it is now; its number."""
        self.history.append(value.remembered())
        return len(self.history)

    @property
    def names(self) -> tuple[str, ...]:
        """Names behind a dollar that are no registers: variables and functions."""
        return (*self.variables, *self.computed, *self.functions)

    def set(self, name: str, value: TypedValue) -> None:
        """Give a variable of the user's own a value."""
        self.variables[name] = value

    def forget(self, name: str) -> None:
        """Have a variable of the user's own without a value."""
        self.variables.pop(name, None)
