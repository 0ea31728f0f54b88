"""Opens the interface: the guest's, or first the picker of samples."""

import os
from dataclasses import replace

from engine.cli.interface import InterfaceOptions
from engine.errors import CommandError
from tui.app import KprobeApp
from tui.samples import Picker
from tui.settings import load_settings


def start(options: InterfaceOptions) -> int:
    """Run the interface to its end; the exit code.

    Raises:
        ImageError: the guest cannot be run.
        CommandError: an option cannot be carried out, or the settings are wrong.
    """
    settings = load_settings()
    config = options.config
    if not config.guest:
        _need_terminal()
        guest = Picker(settings.theme, settings.ascii or options.ascii_only).run()
        if guest is None:
            return 0
        config = replace(config, guest=guest)
    app = KprobeApp(
        config,
        definitions=options.definitions,
        kernel_rules=options.kernel_rules,
        settings=replace(settings, ascii=settings.ascii or options.ascii_only),
        fresh=options.fresh,
    )
    try:
        _need_terminal()
    except CommandError:
        app.bridge.close()
        raise
    result = app.run()
    return result if isinstance(result, int) else app.return_code or 0


def _need_terminal() -> None:
    if not os.isatty(0) or not os.isatty(1):
        raise CommandError("the interface needs a terminal; 'kprobe-tui run' works without one")
