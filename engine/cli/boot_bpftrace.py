"""`kprobe-tui bpftrace --boot`: boot a kernel image with a script of bpftrace."""

import sys
from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request
from engine.cli.bpftrace import (
    ScriptCommand,
    listed_patterns,
    read_script,
    script_options,
    settings_of_scripts,
    words_of,
)
from engine.cli.machine_run import console_input, run_machine, trace_stream
from engine.cli.options import color_option, names_choice, names_options, timeout_option
from engine.session.headless.boot_scripts import list_kernel_probes, opened_boot_script
from engine.session.headless.bpftrace import script_text
from engine.session.protocol.report import NOT_WHOLE
from engine.session.protocol.scripts import BootScriptRequest


class _BootCommand(ScriptCommand):
    """The same for a kernel."""

    runs = "KERNEL"
    or_else = ""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx)[:-2], "KERNEL"]


@click.command(
    cls=_BootCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "Files that programs of the booted system open",
            "--init root -e 'tracepoint:syscalls:sys_enter_openat "
            '{ printf("%s %s\\n", comm, str(args.filename)); }\' -- vmlinuz',
        ),
        (
            "A script, with the kernel's modules",
            "--init root --modules modules biolatency.bt -- vmlinuz",
        ),
        (
            "A function of a program inside",
            "--init root -e 'uprobe:/bin/prog:main { @[comm] = count(); }' -- vmlinuz",
        ),
        ("What a function is given", "-lv 'fentry:vfs_*' -- vmlinuz"),
    ),
)
@script_options
@boot_options
@names_options
@timeout_option
@color_option
@click.argument("kernel_image", metavar="KERNEL")
@click.pass_context
def bpftrace_boot(
    ctx: click.Context,
    /,
    kernel_image: str,
    script: str | None,
    listing: bool,
    verbose: bool,
    dry_run: bool,
    output: str | None,
    form: str,
    quiet: bool,
    **values: Any,
) -> int:
    """Boot KERNEL as a machine with a script of bpftrace attached to it and its programs.

    The console of the machine is stdin and stdout, where the script's output goes, too, or to the
    file of -o. Probes take none of the machine's time; tracepoints but those of system calls are
    enabled in the kernel by its command line, and take some of it, as they do natively.

    Exit code: that of exit(N), else as of `kprobe-tui boot`.
    """
    words = words_of(ctx)
    boot, choice = boot_request(kernel_image, values), names_choice(values)
    if listing:
        patterns = listed_patterns(script, words)
        for line in list_kernel_probes(boot, choice, patterns, verbose=verbose):
            console.put(line)
        return 0
    if verbose:
        raise click.UsageError("-v: with -l")
    name, data, parameters = read_script(script, words)
    request = BootScriptRequest(
        name,
        script_text(name, data).text,
        parameters,
        settings_of_scripts(),
        form,
        output,
        quiet,
        choice,
        boot.seed,
    )
    stdin = None if dry_run else console_input()
    stream = trace_stream(sys.stdout.buffer, stdin)

    def write(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    def say(data: bytes) -> None:
        console.text(data.decode(errors="surrogateescape").rstrip("\n"))

    with opened_boot_script(boot, request, console.write_raw, stdin, write, say) as scripted:
        if dry_run:
            console.remarks(scripted.remarks(), values["color"])
            return 0
        code = run_machine(
            scripted.booted,
            scripted.run,
            timeout=values["timeout"],
            color=values["color"],
            stdin=stdin,
        )
        console.remarks(scripted.remarks(), values["color"])
    if scripted.incomplete:
        return NOT_WHOLE
    return code if scripted.exit_code is None else scripted.exit_code
