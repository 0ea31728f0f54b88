"""The text of a script with those of the files that it imports, and the tree of all that."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.trace.bpftrace.imports import with_imports
from engine.trace.bpftrace.parser import parse
from engine.trace.bpftrace.text import ScriptText
from engine.trace.bpftrace.tree import Script

TYPED: Final = "stdin"
"""The name of a script that has no file, as bpftrace has it."""


def script_source(
    name: str, text: str, parameters: Sequence[str], program: str = ""
) -> tuple[ScriptText, Script]:
    """Read a script.

    Args:
        name: of its file; imports are relative to the folder of that, or to the working directory.
        text: of the script.
        parameters: what `$1` and so on stand for.
        program: the guest's own, for places without a target; "" for none.

    Raises:
        WrongScriptError: something in it is not understood, or a file cannot be imported.
    """
    folder = Path() if name == TYPED else Path(name).parent
    source = with_imports(ScriptText(name, text), folder)
    return source, parse(source, parameters, program=program)
