"""Requests of the command line carried out, each as a whole.

`traces` runs a guest with events or with its functions traced (`graph_reports` sum up the calls),
`calltraces` with its system calls, `backtraces` up to a place, `effect` twice over the same inputs
(`replay`), the second run `beside` the first where it can be, to find where a plain and a probed
run part in what is `observed`. `explore` looks for a schedule under which a run ends otherwise, by
`trials` that it compares, or in a way that `end_conditions` name; `endings` says more of how a
guest has ended, `process_end` ends a process in which code of the user's was executed. `checks`
judges places, `kernel_checks` those of kernel images, which `kernel_guests` tells from programs
and whose functions `calls` calls; `listings` shows code, `marker_list` static probes, `perf_probe`
what perf probe lists, `program_words` what completion offers, all without a run of a program.
`live` has the running kernel record in place of a guest, and `live_effect` compares the two.
`recordings` makes files of runs and lives through them, `sweep` carries out many requests,
`self_profile` tells where the time of one went. `recovery` reads what a killed trace has left.
`booting` boots a machine that is made of what is `bootable`, `boot_recordings` keeps a boot in a
file, `boot_traces` with events or its functions traced, `boot_backtraces` up to a place,
`boot_effect` twice to find what probes change; `bpftrace` runs a guest with a script,
`script_beside` one beside a trace, `boot_scripts` one on a booted kernel; `kernel_answers` asks
the kernel in such an `agent_machine` about definitions. `bench` measures what a hit costs here,
`bench_peers` what it costs elsewhere; `world` asks the guest's kernel what there is, for `help
world`. `choices` are names that options choose from, `declared` values that are known to differ.
"""
