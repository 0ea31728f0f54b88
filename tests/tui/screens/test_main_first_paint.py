"""Work until the guest is seen for the first time: counted, as time is the machine's."""

import json
import os
import subprocess
import sys
from pathlib import Path

from warmed import SAME_CODE

SAMPLE = Path(__file__).parents[3] / "samples" / "bin" / "x86_64" / "recursion"
CODE = """
import asyncio, json, sys

from tui.app import KprobeApp
from engine.session import GuestConfig
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen
from tui.screens import main

main._PATIENCE = 60  # this machine may be busy

applied = []
apply = Stylesheet.apply
Stylesheet.apply = lambda self, node, **how: applied.append(node) or apply(self, node, **how)
layouts = []
lay_out = Screen._refresh_layout
Screen._refresh_layout = lambda self, *a, **k: layouts.append(self) or lay_out(self, *a, **k)
pictures = []
display = KprobeApp._display


def counted(app, screen, picture):
    display(app, screen, picture)
    if picture is not None and not any(pictures):
        pictures.append(bool(app.view.registers))
        if not pictures[-1]:
            return
        found = [name for name in sys.modules if name.partition(".")[0] in ("engine", "tui")]
        print(json.dumps([found, len(applied), len(layouts), pictures]))
        app.exit(0)


KprobeApp._display = counted
KprobeApp(GuestConfig(sys.argv[1], history=True)).run(headless=True, size=(120, 40))
"""
LOADED = 549
"""Modules of ours: each costs a quarter of a millisecond. This may only be lowered."""
APPLIED = 86
"""Times that rules are set. This may only be lowered."""
LAYOUTS = 2
"""Times that all widgets get their places. This may only be lowered."""


def test_the_first_picture_costs_what_it_may() -> None:
    command = [sys.executable, "-c", CODE, str(SAMPLE)]
    env = {**os.environ, **SAME_CODE}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert not done.returncode, done.stderr
    loaded, applied, layouts, pictures = json.loads(done.stdout.splitlines()[-1])
    assert pictures == [True], "the screen is painted without the guest first"
    assert len(loaded) <= LOADED, sorted(loaded)
    assert applied <= APPLIED
    assert layouts <= LAYOUTS
