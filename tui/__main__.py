"""The `kprobe-tui` command: a subcommand runs headless, else the terminal interface opens."""

import gc
import os
import sys

from engine.cli import main as run_command
from engine.cli.interface import InterfaceOptions
from tui.configcli import config


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run_command(sys.argv[1:], open_interface, (config,)))


def open_interface(options: InterfaceOptions) -> int:
    """Open the terminal interface; the exit code."""
    if options.color == "never":
        os.environ["NO_COLOR"] = "1"  # read by Textual as it is imported
    elif options.color == "always":
        os.environ.pop("NO_COLOR", None)
    # Frames are painted when something has changed; what a key does is to be seen within 8 ms.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    gc.disable()  # what is loaded now stays: nothing is to be found until the app is up
    from tui.start import start  # Textual takes a quarter of a second to import

    return start(options)


if __name__ == "__main__":
    main()
