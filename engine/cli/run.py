"""`kprobe-tui run`: run a guest headless."""

import time
from typing import TYPE_CHECKING, Any

import click

from engine.cli import console
from engine.cli.grouped import GroupedCommand, SwitchedCommand
from engine.cli.host import attached
from engine.cli.options import (
    BOOT,
    END_HELP,
    boot_flag,
    config_of,
    guest_options,
    json_option,
    schedule_options,
)
from engine.session import Reports, Session
from engine.session.headless.endings import explain

if TYPE_CHECKING:
    from engine.session.headless.self_profile import SelfProfile


class _Run(SwitchedCommand, GroupedCommand):
    """`run`, which is `boot` with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot import boot  # few runs boot a machine

        return boot


@click.command(
    cls=_Run,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "A program of this machine's architecture, or a shipped sample",
            "samples/bin/x86_64/recursion",
        ),
        (
            "A program of a tree of another architecture",
            "--root /srv/board /srv/board/usr/bin/lua5.4 -v",
        ),
        (
            "Stopped after ten seconds, with 512 MB of memory",
            "--timeout 10 --memory 512M samples/bin/x86_64/sort",
        ),
    ),
)
@json_option(END_HELP)
@schedule_options
@guest_options
@boot_flag
def run(**values: Any) -> int:
    """Run GUEST with ARGS; standard streams and exit code are the guest's."""
    started = time.perf_counter()
    session = Session(config_of(values))
    explain(session)
    loaded = time.perf_counter()
    profile = profiled(debug=values["debug"])
    try:
        with attached(session, values["timeout"]):
            reports = session.run()
        if values["as_json"]:
            _tell(session, reports)
        else:
            show(reports, values["color"])
        if values["debug"]:
            figures(session, loaded - started, time.perf_counter() - loaded)
            tell_profile(profile)
    finally:
        session.close()
    return reports.exit_code


def _tell(session: Session, reports: Reports) -> None:
    """Print the end as JSON."""
    from engine.cli.documents import document, end_of  # few runs ask

    made = session.figures()
    figures = {"system_calls": made.system_calls, "bytes_touched": made.touched}
    remarks = (*reports.damage, *reports.remarks)
    console.text(document("run", remarks, end=end_of(reports), **figures))


def show(reports: Reports, color: str) -> None:
    """Print the remarks about a run."""
    console.remarks((*reports.damage, *reports.remarks), color)


def profiled(*, debug: bool) -> "SelfProfile | None":
    """Begin to sample where this process's time goes; None where nobody asks for it."""
    if not debug:
        return None
    from engine.session.headless.self_profile import SelfProfile  # as above

    return SelfProfile()


def tell_profile(profile: "SelfProfile | None") -> None:
    """Print where the time went."""
    if profile is not None:
        console.remark(*profile.lines())


def figures(session: Session, loading: float, running: float) -> None:
    """Print the engine's own figures, for --debug."""
    made = session.figures()
    console.remark(
        f"loaded in {loading * 1e3:.0f} ms, ran {running * 1e3:.0f} ms, "
        f"{made.system_calls} system calls, {made.blocks} counted blocks, "
        f"{made.fills} TLB fills, {made.touched >> 10} KiB touched"
        + (f", {made.lent} AVX, FMA and BMI instructions" if made.lent else "")
    )
