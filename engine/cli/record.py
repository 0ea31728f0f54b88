"""`kprobe-tui record`: run a guest and write the run to a file."""

from typing import Any

import click

from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, schedule_options
from engine.cli.run import show
from engine.session.headless.recordings import RecordedRun


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-o", "output", required=True, metavar="FILE", help="Write the run there.")
@schedule_options
@guest_options
def record(output: str, **values: Any) -> int:
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
