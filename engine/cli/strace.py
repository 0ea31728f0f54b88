"""`kprobe-tui strace`: run a guest with its system calls shown."""

from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, schedule_options
from engine.cli.run import show
from engine.session.headless.calltraces import trace_calls
from engine.session.protocol.calltraces import CallTraceRequest

SPELLED: Final = (
    *("trace", "signal", "status", "abbrev", "verbose", "raw", "read", "write", "inject", "fault"),
)
"""Keys of -e that have long options of their own; --quiet has none here but a count."""
_OPTIONS = (
    option(
        "-e",
        "expressions",
        multiple=True,
        metavar="[KEY=]SET",
        help="Show the calls of a set: names, %file, %desc, %process, %signal, %memory, %network, "
        "/REGEX, ! for all but them; or signal=SET, status=SET, quiet=SET, raw=, abbrev=, "
        "verbose=SET; read=FDS, write=FDS dump what is read and written. inject=SET:error=ERRNO "
        "(or retval=N, signal=SIG, delay_enter=US, delay_exit=US) [:when=N..N+N] and fault=SET "
        "tamper with them.",
        group=Group.EVENTS,
    ),
    option(
        "-f",
        "--follow-forks",
        "follows",
        count=True,
        help="Show further threads and processes, too; -ff with -o FILE writes FILE.PID of each.",
        group=Group.EVENTS,
    ),
    option(
        "-P",
        "--trace-path",
        "paths",
        multiple=True,
        metavar="PATH",
        help="Show calls about this path of the guest alone; again and again.",
        group=Group.EVENTS,
    ),
    option(
        "-z",
        "--successful-only",
        "successful",
        is_flag=True,
        help="Show calls that succeed.",
        group=Group.EVENTS,
    ),
    option(
        "-Z",
        "--failed-only",
        "failed",
        is_flag=True,
        help="Show calls that fail.",
        group=Group.EVENTS,
    ),
    option(
        "-o", "--output", metavar="FILE", help="Write to FILE, not stderr.", group=Group.OUTPUT
    ),
    option(
        "-c",
        "--summary-only",
        "table",
        is_flag=True,
        help="Count calls, errors and ticks of the guest's clock by name.",
        group=Group.OUTPUT,
    ),
    option(
        "-C",
        "--summary",
        "both",
        is_flag=True,
        help="Show the calls, and the table behind them.",
        group=Group.OUTPUT,
    ),
    option(
        "-S",
        "--summary-sort-by",
        "sort",
        metavar="SORT",
        default="time",
        help="Sort the table by time, calls, errors, name or nothing.",
        group=Group.OUTPUT,
    ),
    option(
        "-U",
        "--summary-columns",
        "table_columns",
        metavar="NAME[,NAME...]",
        help="Columns of the table: time-percent, total-time, min-time, max-time, avg-time, "
        "calls, errors, name.",
        group=Group.OUTPUT,
    ),
    option(
        "-n",
        "--syscall-number",
        "numbers",
        is_flag=True,
        help="Show the number of the call.",
        group=Group.OUTPUT,
    ),
    option(
        "-i",
        "--instruction-pointer",
        "pointers",
        is_flag=True,
        help="Show the address behind the call's instruction.",
        group=Group.OUTPUT,
    ),
    option(
        "-T",
        "--syscall-times",
        "takes",
        is_flag=True,
        help="Show the ticks of the guest's clock that each call took.",
        group=Group.OUTPUT,
    ),
    option(
        "-t",
        "times",
        count=True,
        help="Show the guest's time of day; -tt with microseconds, -ttt since 1970.",
        group=Group.OUTPUT,
    ),
    option(
        "-r",
        "--relative-timestamps",
        "relative",
        is_flag=True,
        help="Show the ticks since the line before.",
        group=Group.OUTPUT,
    ),
    option(
        "-y",
        "--decode-fds",
        "descriptors",
        count=True,
        help="Show the files of descriptors; -yy numbers of devices, addresses of sockets, too.",
        group=Group.OUTPUT,
    ),
    option(
        "-k",
        "--stack-trace",
        "stacks",
        is_flag=True,
        help="Show the call stack behind each call.",
        group=Group.OUTPUT,
    ),
    option(
        "-s",
        "--string-limit",
        "string_max",
        type=click.IntRange(0, 1 << 20),
        default=32,
        show_default=True,
        metavar="N",
        help="Show N bytes of a string.",
        group=Group.OUTPUT,
    ),
    option(
        "-v",
        "--no-abbrev",
        "verbose",
        is_flag=True,
        help="Show structures whole.",
        group=Group.OUTPUT,
    ),
    option(
        "-x",
        "--strings-in-hex",
        "hexadecimal",
        count=True,
        help="Show text that no terminal can show as hexadecimal numbers; -xx all text.",
        group=Group.OUTPUT,
    ),
    option(
        "-q",
        "--quiet",
        "quiet",
        count=True,
        help="No word of new threads; -qq nor of exits.",
        group=Group.OUTPUT,
    ),
    option(
        "-a",
        "--columns",
        "column",
        type=click.IntRange(0, 1000),
        default=40,
        show_default=True,
        metavar="N",
        help="Results stand in column N.",
        group=Group.OUTPUT,
    ),
)


_SPELLED: Final = tuple(
    option(
        f"--{key}",
        f"spelled_{key}",
        multiple=True,
        metavar="SET",
        help=f"The same as -e {key}=SET.",
        group=Group.EVENTS,
    )
    for key in SPELLED
)
_ENVIRONMENT: Final = option(
    "-E",
    "variables",
    multiple=True,
    metavar="K=V",
    help="The same as --env K=V.",
    group=Group.GUEST,
)


def _strace_options(command: Any) -> Any:
    for add in reversed((*_OPTIONS, *_SPELLED, _ENVIRONMENT)):
        command = add(command)
    return command


@click.command(
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("All calls, of threads and children, too", "-f samples/bin/x86_64/forkserver"),
        ("Calls about files, in a file", "-e trace=%file -o calls.txt /bin/ls"),
        ("How often each call is made", "-c /bin/ls -l"),
    ),
)
@_strace_options
@schedule_options
@guest_options
def strace(
    expressions: tuple[str, ...],
    follows: int,
    paths: tuple[str, ...],
    successful: bool,
    failed: bool,
    output: str | None,
    table: bool,
    both: bool,
    sort: str,
    table_columns: str | None,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and show its system calls and signals, as strace does.

    Lines go to stderr, or to the file of -o; standard streams and exit code are the guest's.
    Times are those of the guest's own clock, in ticks: each is a block of its code.
    """
    if table and both:
        raise click.UsageError("-c and -C: one of them")
    if table_columns is not None and not (table or both):
        raise click.UsageError("-U needs -c or -C")
    if successful and failed:
        raise click.UsageError("-z and -Z: one of them")
    values["env"] = (*values["env"], *values.pop("variables"))
    spelled = tuple(f"{key}={text}" for key in SPELLED for text in values.pop(f"spelled_{key}"))
    status = ("status=successful",) if successful else ("status=failed",) if failed else ()
    shown = {
        name: values.pop(name)
        for name in (
            *("takes", "times", "relative", "descriptors", "stacks", "string_max", "verbose"),
            *("hexadecimal", "quiet", "column", "numbers", "pointers"),
        )
    }
    request = CallTraceRequest(
        config_of(values),
        follows=follows,
        expressions=(*expressions, *spelled, *status),
        paths=paths,
        output=output,
        counts=1 if table else 2 if both else 0,
        sort=sort,
        columns=table_columns,
        **shown,
    )
    reports = trace_calls(
        request, console.errors(), lambda session: attached(session, values["timeout"])
    )
    show(reports, values["color"])
    return reports.exit_code
