"""`kprobe-tui record`: run a guest and write the run to a file."""

from typing import Any

import click

from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, schedule_options
from engine.cli.run import show
from engine.session.headless.recordings import RecordedRun


class _RecordOfAnything(SwitchedCommand, GroupedCommand):
    """`record`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_record import record_boot  # few recordings are of a machine

        return record_boot


@click.command(
    cls=_RecordOfAnything,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("A run in a file", "-o sort.rec samples/bin/x86_64/sort"),
        ("A run with another order of threads", "-o race.rec --seed 7 samples/bin/x86_64/race"),
        (
            "A program that sees a directory of this machine",
            "-o recursion.rec --share /tmp samples/bin/x86_64/recursion",
        ),
    ),
)
@option(
    "-o", "output", required=True, metavar="FILE", help="Write the run there.", group=Group.OUTPUT
)
@schedule_options
@guest_options
@boot_flag
def record(output: str, boots: bool, **values: Any) -> int:
    """Run GUEST with ARGS and write the run to a file, which replay lives through again.

    Standard streams and exit code are the guest's.
    """
    run = RecordedRun(config_of(values), output)
    try:
        reports = run.run(lambda session: attached(session, values["timeout"]))
        show(reports, values["color"])
    finally:
        run.close()
    return reports.exit_code
