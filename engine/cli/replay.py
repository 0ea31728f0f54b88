"""`kprobe-tui replay`: live through a recorded run again, with events."""

import os
import signal
from contextlib import AbstractContextManager
from typing import Any

import click
from msgspec.structs import replace

from engine.cli import console
from engine.cli.grouped import Group, option
from engine.cli.host import attached, both
from engine.cli.instances import (
    INSTANCES,
    WithInstances,
    event_options,
    probes_of,
    trace_options,
)
from engine.cli.options import color_option, file_options, timeout_option
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.cli.run import show
from engine.cli.timing_options import ALONE, latency_request, timing_of, timing_options
from engine.errors import KprobeTuiError
from engine.session import GuestConfig, Reports, Session
from engine.session.headless.endings import explain
from engine.session.headless.recordings import OpenedRecording, replayed
from engine.session.headless.traces import (
    LIST_FORMS,
    AttachScript,
    opened_graph,
    opened_trace,
)
from engine.session.protocol.config import Mode, is_recorded_boot
from engine.session.protocol.requests import TraceInstance, TraceRequest


class _ReplayOfAnything(WithInstances):
    """`replay`, which is another command where the file is a recorded boot."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse a command line; that of a recorded boot is one of `boot`, or of `trace --boot`."""
        if not args or not is_recorded_boot(args[-1]):
            return super().make_context(info_name, args, parent, **extra)
        from engine.cli.boot import boot  # few recordings are of a machine
        from engine.cli.boot_trace import trace_boot

        plain = {name for parameter in boot.params for name in parameter.opts}
        given = {word.partition("=")[0] for word in args[:-1] if word.startswith("-")}
        command = boot if given <= plain else trace_boot
        return command.make_context(info_name, args, parent, **extra)


@click.command(
    cls=_ReplayOfAnything,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("The run in the interface, all of the past included", "sort.rec"),
        ("The same run with a probe", "-e 'p partition' sort.rec"),
        (
            "Return values in a file for other tools",
            "-r '*' --format perfetto -o sort.pftrace sort.rec",
        ),
    ),
)
@event_options
@timing_options
@option(
    "--instance",
    metavar="NAME",
    help="Begin another set of events with a buffer, filters and output of its own, as in trace.",
    group=Group.EVENTS,
)
@option(
    "--maxactive-default",
    is_flag=True,
    help="A return probe without a number of its own gets as many instances as in Linux.",
    group=Group.EVENTS,
)
@option(
    "--handlers",
    metavar="FILE.py",
    help="Register the probes that a Python file defines.",
    group=Group.EVENTS,
)
@option(
    "--list",
    "listing",
    is_flag=True,
    help="List the definitions and do not run.",
    group=Group.OUTPUT,
)
@option(
    "--headless",
    is_flag=True,
    help="On a terminal, without events: no interface, but the run itself.",
    group=Group.OUTPUT,
)
@option("--quiet", is_flag=True, help="Leave out what the guest wrote.", group=Group.OUTPUT)
@option(
    "--bpftrace",
    "script",
    metavar="FILE.bt",
    help="Run a script of bpftrace over the run; what it prints goes to stdout, or without events "
    "to -o FILE.",
    group=Group.EVENTS,
)
@file_options
@probe_options
@guest_probe_options
@timeout_option
@color_option
@option("--debug", is_flag=True, help="Show tracebacks.", group=Group.OUTPUT)
@click.argument("file", type=click.Path())
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    file: str,
    maxactive_default: bool,
    handlers: str | None,
    listing: bool,
    quiet: bool,
    mode_name: str,
    script: str | None,
    **values: Any,
) -> int:
    """Live through a recorded run again, with events; FILE is all it needs.

    On a terminal, without events, it opens in the interface, where branches of the run see what
    --root and --share show them beside the recording. Else what the guest wrote is written
    again, and the exit code is the guest's. The trace goes to stderr, or to the file of -o.
    """
    recording = OpenedRecording(file)
    try:
        if script is not None and _is_alone(ctx):
            return _scripted(recording, file, script, quiet, mode_name, values)
        values["script"] = script
        return _lived_through(
            ctx, recording, file, maxactive_default, handlers, listing, quiet, mode_name, values
        )
    except KprobeTuiError as error:
        if recording.damage:
            error.before = *error.before, f"{file}: {recording.damage}"
        raise


def _is_alone(ctx: click.Context) -> bool:
    """True if nothing but the script is to be made of a run.

    Raises:
        UsageError: an option is for events, and there are none.
    """
    values = ctx.params
    timing = timing_of(ctx, instances=bool(ctx.meta[INSTANCES]))
    plain = probes_of(dict(values)).is_empty and values["handlers"] is None
    if not plain or values["listing"] or ctx.meta[INSTANCES] or timing.sample:
        return False
    for name in ("filters", "triggers", "buffer", "stack", "profile", "text_options"):
        if values[name]:
            raise click.UsageError(f"--bpftrace alone has no {ALONE[name]}: give events")
    return True


def _lived_through(
    ctx: click.Context,
    recording: OpenedRecording,
    file: str,
    maxactive_default: bool,
    handlers: str | None,
    listing: bool,
    quiet: bool,
    mode_name: str,
    values: dict[str, Any],
) -> int:
    """Live through a recording that was opened; the exit code."""
    instances: tuple[TraceInstance, ...] = ctx.meta[INSTANCES]
    mode = Mode(mode_name)
    timing, given = timing_of(ctx, instances=bool(instances)), dict(ctx.params)
    options = replace(trace_options(values, keeps=not listing), mode=mode)
    if timing.sample:
        options = replace(options, stack=True)
    probes, filters, triggers = probes_of(values), values["filters"], values["triggers"]
    config = recording.config(
        technique=values["technique"],
        returns=values["caught_by"],
        follow=values["follow"] == "yes",
        root=values["root"],
        shares=values["shares"],
    )

    def make(config: GuestConfig) -> Session:
        session = replayed(recording.opened(config))
        if not quiet:
            session.kernel.output = console.write_guest
        return session

    probes = replace(probes, sample=timing.sample)
    granted = values["root"] is not None or values["shares"]
    script = values["script"]
    plain = probes.is_empty and handlers is None and not instances and not timing.latency
    plain = plain and script is None
    if plain and not listing and not quiet and _is_interactive(values):
        # The interface is another matter: who lives through a run headless does not load it.
        from engine.cli.interface import InterfaceOptions

        config = replace(config, guest=file, recording=file)
        return int(
            ctx.obj(InterfaceOptions(config, (), mode is Mode.KERNEL, color=values["color"]))
        )
    if granted:
        raise click.UsageError(
            "--root and --share are for branches of the run, which the interface makes"
        )
    if timing.latency:
        wanted = latency_request(timing, config, given)
        with opened_graph(wanted, console.errors(), make) as graphed:
            reports = graphed.run(lambda session: attached(session, values["timeout"]))
    elif plain:
        reports = _plain(make(config), values["timeout"])
    else:
        adapted = tuple(each.adapted(mode, keeps=not listing) for each in instances)
        request = TraceRequest(
            config,
            probes,
            options,
            filters,
            triggers,
            handlers,
            maxactive_default,
            adapted,
            timing.report,
        )
        beside: AttachScript | None = None
        if script is not None:
            from engine.cli.bpftrace import script_beside  # few replays have one

            beside = script_beside(script, config, mode, recorded=True)
        with opened_trace(request, console.errors(), make, beside) as traced:
            for text in traced.refused:
                console.text(text)
            special = dict(traced.special)
            if not listing and any(each.overwrite for each in request.all_options):
                special[signal.SIGUSR1] = both(traced.write_ring, special.get(signal.SIGUSR1))

            def attach(session: Session) -> AbstractContextManager[None]:
                return attached(session, values["timeout"], special)

            if listing:
                for line in traced.listed(LIST_FORMS[0]):
                    console.put(line)
                console.remarks(traced.remarks, values["color"])
                return 0
            reports = traced.run(attach)
    show(reports, values["color"])
    if recording.damage:
        console.remark(f"{file}: {recording.damage}")
    return reports.exit_code


def _scripted(
    recording: OpenedRecording,
    file: str,
    script: str,
    quiet: bool,
    mode_name: str,
    values: dict[str, Any],
) -> int:
    """Live through a recording with a script of bpftrace; the exit code."""
    from engine.cli.bpftrace import read_script, say  # few replays have one
    from engine.session.headless.bpftrace import opened_script, script_text
    from engine.session.protocol.scripts import ScriptRequest

    config = recording.config(
        technique=values["technique"],
        returns=values["caught_by"],
        follow=values["follow"] == "yes",
    )

    def make(config: GuestConfig) -> Session:
        session = replayed(recording.opened(config))
        if not quiet:
            session.kernel.output = console.write_guest
        return session

    name, data, _ = read_script(None, (script,))
    request = ScriptRequest(
        config,
        name,
        script_text(name, data).text,
        output=values["output"],
        quiet=True,
        mode=Mode(mode_name),
        recorded=True,
    )
    with opened_script(request, console.write_bytes, say, make) as scripted:
        reports = scripted.run(lambda session: attached(session, values["timeout"]))
    show(reports, values["color"])
    if recording.damage:
        console.remark(f"{file}: {recording.damage}")
    return reports.exit_code


def _is_interactive(values: dict[str, Any]) -> bool:
    """True if the user sits at a terminal, and has asked for nothing that needs none."""
    if values["headless"] or values["timeout"] is not None:
        return False
    return os.isatty(0) and os.isatty(1)


def _plain(session: Session, timeout: float | None) -> Reports:
    """Live through a run without events."""
    explain(session)
    try:
        with attached(session, timeout):
            return session.run()
    finally:
        session.close()
