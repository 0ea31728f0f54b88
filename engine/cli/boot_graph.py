"""`kprobe-tui graph --boot`: boot a kernel image with its functions traced."""

import time
from typing import Any

import click
from msgspec.structs import replace

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request, kprobes_option
from engine.cli.boot_trace import run_traced
from engine.cli.graph_options import graph_choice, graph_options
from engine.cli.grouped import GroupedCommand
from engine.cli.machine_run import console_input, show_figures, trace_stream
from engine.cli.options import (
    color_option,
    debug_option,
    names_choice,
    names_options,
    timeout_option,
)
from engine.cli.probe_options import mode_option, task_options
from engine.cli.report_options import (
    check_alone,
    report_choice,
    report_name,
    report_options,
)
from engine.session.headless.boot_traces import BootGraphRequest, opened_boot_graph


@click.command(
    cls=GroupedCommand,
    uses=(
        (
            "What a system call does, but for what lies under it",
            "-f 'vfs_*' -f 'ext4_*' --initrd initrd.gz vmlinuz",
        ),
        ("With return values, in a file", "-f 'tty_*' --retval -o out.txt vmlinuz"),
        ("Only what is called in a function", "-f '*lookup*' --under vfs_statx vmlinuz"),
    ),
)
@graph_options
@report_options
@task_options
@mode_option
@boot_options
@kprobes_option
@names_options
@timeout_option
@color_option
@debug_option
@click.argument("kernel_image", metavar="KERNEL")
def graph_boot(
    kernel_image: str, globs: tuple[str, ...], text_options: tuple[str, ...], **values: Any
) -> int:
    """Boot KERNEL as a machine and show the calls of its functions; its console is stdin, stdout.

    -f names the functions: a boot makes some 30 million calls. Times are nanoseconds since
    power-on. The trace goes to stderr, or to the file of -o.

    Exit code: as of `kprobe-tui boot`.
    """
    timeout, color, debug = values["timeout"], values["color"], values["debug"]
    kprobes = values.pop("kprobes")
    if not globs:
        raise click.UsageError("nothing to trace: give -f GLOB")
    graph, options = graph_choice(values)
    as_json = values["as_json"]
    words, _ = report_choice(values, "ns")
    if as_json and not words:
        raise click.UsageError("--json needs --report")
    if words:
        check_alone(options, text_options)
    options = replace(options, text=(*options.text, *(words or text_options)))
    boot = boot_request(kernel_image, values)
    request = BootGraphRequest(
        boot, globs, graph, options, names_choice(values), report_name(words)
    )
    stdin = console_input()
    began = time.process_time()
    with opened_boot_graph(
        request, console.write_raw, stdin, trace_stream(console.errors(), stdin)
    ) as traced:
        code = run_traced(traced, timeout=timeout, color=color, stdin=stdin, kprobes=kprobes)
        if debug:
            show_figures(traced.booted, began, color)
        return code
