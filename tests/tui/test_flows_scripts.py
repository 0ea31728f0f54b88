"""Scripts of bpftrace in the interface: typed, from a file, wrong, and gone again."""

from pathlib import Path

from controlkit import sample
from flowkit import User, flow

from engine.session.protocol.views import RunState

GUEST = sample("x86_64", "recursion")
COUNTS = f"uprobe:{GUEST}:fibonacci {{ @calls = count(); }}"


def test_a_script_shows_its_maps(tmp_path: Path) -> None:
    file = tmp_path / "args.bt"
    file.write_text(f"uprobe:{GUEST}:factorial /arg0 > $1/ {{ @most = max(arg0); }}\n")

    async def steps(user: User) -> None:
        await user.command(f"bpftrace {COUNTS}")
        await user.says("stdin is attached")
        await user.command(f"bpftrace {file} 3")  # which takes its place
        await user.says("args.bt is attached")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.shows("@most: 20")
        assert "@calls" not in user.screen
        await user.command("bpftrace !")
        await user.says("is out")
        assert user.view.histograms == ()

    flow(steps)


def test_a_wrong_script_and_a_missing_file_are_told(tmp_path: Path) -> None:
    async def steps(user: User) -> None:
        await user.command("bpftrace uprobe:nowhere { }")
        await user.says("nowhere")
        await user.command(f"bpftrace {tmp_path / 'none.bt'}")
        await user.says("No such file")
        await user.command("b fibonacci")  # a letter alone is gdb's, whatever words begin with it
        await user.until(lambda: user.probes)

    flow(steps)
