"""Makes the README's pictures from real runs: `python tests/support/pictures.py`.

Also gives the README's table of keys: `python tests/support/pictures.py keys`.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "tests" / "data" / "pictures"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

SCENES: Final = {
    "hits": ("x86_64", (110, 34), "p ~fibonacci enter @ready c @ended"),
    "slow-motion": (
        "aarch64",
        (110, 34),
        "p ~fibonacci enter 8 b 1 c @stopped full_stop full_stop full_stop",
    ),
    "past": (
        "x86_64",
        (110, 34),
        "p ~fibonacci enter @ready c @ended left_curly_bracket left_curly_bracket F @stopped",
    ),
    "why": ("x86_64", (110, 34), "g ~fibonacci+1 enter y"),
    "narrow": ("x86_64", (80, 24), "p ~fibonacci enter 8 b 1 c @stopped"),
}
"""By name: architecture of the sample, size of the terminal, steps as in `test_snapshots.py`."""


async def take(name: str) -> str:
    """A picture as SVG."""
    from screens import Paints, settle

    from engine.session import GuestConfig
    from tui.app import KprobeApp

    arch, size, steps = SCENES[name]
    app = KprobeApp(GuestConfig(f"samples/bin/{arch}/recursion", history=True))
    paints: Any = Paints(app)
    async with app.run_test(size=size) as pilot:
        for step in steps.split():
            if step[0] == "@":
                wanted = step[1:]
                await settle(pilot, paints, lambda: app.view.state.value == wanted)  # noqa: B023
            else:
                await pilot.press(*(step[1:] if step[0] == "~" else [step]))
                await settle(pilot, paints)
        return app.export_screenshot(title=f"kprobe-tui, {name.replace('-', ' ')}")


def key_table() -> Iterator[str]:
    """The lines of the README's table of keys."""
    from tui.keymap import ACTIONS

    yield "| keys | | what |"
    yield "|---|---|---|"
    for action in ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.key_text.split())
        yield f"| {keys} | {action.id} | {action.help} |"


def main() -> None:
    """Make all pictures anew."""
    if sys.argv[1:] == ["keys"]:
        print("\n".join(key_table()))
        return
    os.chdir(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SCENES:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(take(name)), encoding="utf-8")


if __name__ == "__main__":
    main()
