"""Makes the README's pictures from real runs: `python tests/support/pictures.py`.

That of a whole kernel boots it, which takes a while: `python tests/support/pictures.py NAME...`
makes some of them only. Also gives the table of the chapter `keys`: the argument is `keys`.
"""

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "tests" / "data" / "pictures"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

_PATIENCE: Final = 600
"""Seconds that a guest may run."""

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
    "object": (
        "x86_64/structs",
        (110, 34),
        "colon ~b space ~transfer enter c @stopped colon ~examine space ~*payment@2 enter z",
    ),
    "kernel": (
        "uml",
        (110, 34),
        "p ~p:open space ~do_filp_open space ~name=+0(+0(%si)):string enter c @ended 6 G k",
    ),
    "boot": (
        "boot",
        (120, 38),
        "p ~p:my/read space ~vfs_read space ~count=$arg3:u64 enter colon ~b space ~vfs_read enter"
        " c @stopped c @stopped c @stopped T",
    ),
}
"""By name: architecture of the sample, or the sample too, size of the terminal, steps as in
`test_snapshots.py`. `uml` is user-mode Linux, `boot` a kernel of Debian's that is booted."""


def _guest(arch: str, folder: str) -> Any:
    """The guest of a scene; a folder for its files."""
    from engine.session import GuestConfig

    if arch == "boot":
        return _booted(folder)
    if arch != "uml":
        name = arch if "/" in arch else f"{arch}/recursion"
        return GuestConfig(f"samples/bin/{name}", history=True)
    from kernelimages import UML_61, image_path

    kernel = {"KERNEL": str(image_path(UML_61))}
    subprocess.run(
        ["sh", "samples/uml.sh", folder],
        env={**os.environ, **kernel},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    words = shlex.split("mem=64M initrd=initrd.gz con=null con0=fd:0,fd:1")
    return GuestConfig(
        f"{folder}/linux.uml",
        tuple(words),
        root="/",
        cwd=folder,
        shares=((folder, False),),
        env=("TMPDIR=/dev/shm", "HOME=/tmp", "PATH=/bin"),
    )


def _booted(folder: str) -> Any:
    """A kernel that boots to a program which reads files."""
    from bootkit import initrd
    from kernelimages import AMD64_61, image_path

    from engine.session import GuestConfig
    from engine.session.protocol.kernels import BootRequest

    os.symlink(image_path(AMD64_61), f"{folder}/vmlinuz")
    kernel = f"{folder}/vmlinuz"
    boot = BootRequest(kernel, initrd=str(initrd(Path(folder), None)), append="quiet")
    return GuestConfig(kernel, called=True, history=True, boot=boot)


async def take(name: str, folder: str) -> str:
    """A picture as SVG; a folder for what it needs."""
    from screens import Paints, settle

    from tui.app import KprobeApp

    arch, size, steps = SCENES[name]
    app = KprobeApp(_guest(arch, folder))
    paints: Any = Paints(app)
    async with app.run_test(size=size) as pilot:
        for step in steps.split():
            if step[0] == "@":
                wanted = step[1:]
                await settle(
                    pilot,
                    paints,
                    lambda: app.view.state.value == wanted,  # noqa: B023
                    patience=_PATIENCE,
                )
            else:
                await pilot.press(*(step[1:] if step[0] == "~" else [step]))
                await settle(pilot, paints)
        return app.export_screenshot(title=f"kprobe-tui, {name.replace('-', ' ')}")


def key_table() -> Iterator[str]:
    """The lines of the table in the chapter `keys`."""
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
    for name in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            picture = asyncio.run(take(name, folder))
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
