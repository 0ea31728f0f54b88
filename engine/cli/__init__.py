"""The headless front end: subcommands over `Session`.

A subcommand is one file with a click command and one entry in `COMMANDS`. Results go to
stdout (for `run`, stdout is the guest's), remarks to stderr; exit codes: 2 bad usage or bad
file, 124 a limit ran out, 125 the engine failed, else the guest's.
"""

from engine.cli.main import COMMANDS, main

__all__ = ["COMMANDS", "main"]
