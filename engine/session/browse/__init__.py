"""Code to look around in while the program runs elsewhere, or not at all.

`code_rows` makes rows of disassembly that can be entered anywhere, `functions` lists those of a
file, `function_names` searches all names at once, `completion` offers what may be typed, `browser`
answers a front end's questions about code, names and verdicts from the files; of a kernel image
`kernel_view` says what its own kernel would.
"""

from typing import TYPE_CHECKING

from engine.session.browse.browser import Browser, DefinitionVerdict, SymbolMatch
from engine.session.browse.code_rows import CodeRow
from engine.session.browse.completion import Completion
from engine.session.browse.functions import FunctionList
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Placed

if TYPE_CHECKING:  # few guests are kernels
    from engine.session.browse.kernel_view import KernelAnswer as KernelAnswer

__all__ = [
    "Browser",
    "CodeRow",
    "Completion",
    "DefinitionVerdict",
    "FunctionList",
    "OpenedProgram",
    "Placed",
    "SymbolMatch",
]
