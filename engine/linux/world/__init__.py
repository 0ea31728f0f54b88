"""Description of the guest's world, found out by asking the guest's own kernel.

`names` has what a program may ask Linux for; `questions` asks a kernel for each of them and sorts
the answers; `calls` sorts the system calls of an architecture by their handlers; `tree` lists the
files that the kernel makes itself. Nothing of what a guest has is written down here, so that a
description made of this cannot go stale. Only `kprobe-tui help world` imports this package.
"""

from engine.linux.world.calls import SortedCalls, sort_calls
from engine.linux.world.questions import Answers, Questions
from engine.linux.world.tree import entries_below

__all__ = ["Answers", "Questions", "SortedCalls", "entries_below", "sort_calls"]
