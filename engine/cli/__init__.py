"""The headless front end: subcommands that make requests of the session and print the answers.

A subcommand NAME is the click command NAME of a file of that name, imported when it is used, and
an entry in `COMMANDS`. Results go to stdout (for `run`, stdout is the guest's), remarks to stderr;
exit codes: 2 bad usage or bad file, 124 a limit ran out, 125 the engine failed, else the guest's.
"""

from engine.cli.main import COMMANDS, end_soon, main

__all__ = ["COMMANDS", "end_soon", "main"]
