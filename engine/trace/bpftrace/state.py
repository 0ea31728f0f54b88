"""The state of a script while it runs: its maps, its output, and what went wrong."""

from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.maps import ScriptMap
from engine.trace.bpftrace.output import Fault, ScriptOutput, ScriptPlace
from engine.trace.bpftrace.text import ScriptText
from engine.trace.bpftrace.tree import ScriptNode
from engine.trace.bpftrace.value_names import ValueNames


class ScriptState:
    """The state of one run of a script.

    Attributes:
        maps: by their names, without the sign.
        output: takes what is printed.
        names: for what is shown by name.
        text: the script.
    """

    def __init__(
        self, script: CheckedScript, text: ScriptText, output: ScriptOutput, names: ValueNames
    ) -> None:
        """Begin with empty maps.

        Args:
            script: the script.
            text: as it was written.
            output: takes what is printed.
            names: for what is shown by name.
        """
        self.maps = {
            name: ScriptMap(name, each.key, each.value, each.entries, each.kind)
            for name, each in script.maps.items()
        }
        self.output = output
        self.names = names
        self.text = text
        self._told: set[tuple[ScriptNode, str]] = set()

    def fault(self, fault: Fault, node: ScriptNode) -> None:
        """Tell that something went wrong at a place, once for each place."""
        if (node, fault.text) not in self._told:
            self._told.add((node, fault.text))
            self.output.fault(fault, [ScriptPlace(self.text, node.span)])

    def print_maps(self) -> None:
        """Print all maps that hold something: the end of a script."""
        self.output.final(self.maps.values())
