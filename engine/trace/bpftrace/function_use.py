"""The use of a function that is built in, as the rules about it see it."""

from collections.abc import Sequence

from msgspec import Struct

from engine.trace.bpftrace.findings import Findings, ProbeFacts
from engine.trace.bpftrace.folding import Constant
from engine.trace.bpftrace.tree import ScriptNode
from engine.trace.bpftrace.type_rules import kind_name
from engine.trace.bpftrace.types import Type


class FunctionUse(Struct):
    """A call, or a name that stands for one.

    Attributes:
        name: of the function.
        node: the whole call.
        arguments: what it is given.
        findings: what is known of the script.
        probe: where it stands.
    """

    name: str
    node: ScriptNode
    arguments: Sequence[ScriptNode]
    findings: Findings
    probe: ProbeFacts

    def kind(self, index: int) -> Type | None:
        """The type of an argument; None if it is not known, or not there."""
        if index >= len(self.arguments):
            return None
        return self.findings.type_of(self.arguments[index])

    def known(self, index: int) -> Constant | None:
        """The value of an argument that is a constant."""
        if index >= len(self.arguments):
            return None
        return self.findings.constants.get(self.arguments[index])

    def number(self, index: int) -> int | None:
        """The value of an argument that is a literal number."""
        value = self.known(index)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, index: int) -> str | None:
        """The value of an argument that is a literal string."""
        value = self.known(index)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else None

    def error(self, text: str, hint: str = "") -> None:
        """Note that the call is wrong."""
        self.findings.error(text, self.node, hint)

    def given(self, index: int) -> str:
        """The kind of an argument, for errors."""
        return kind_name(self.kind(index))
