"""Definitions of probes, the events they record, and the formats these are written in.

`definition` reads a line of the kernel's, with `place_syntax`, `errors` and `variables` (names of
the program's own); `export` writes it for other tools. Of a kernel's own text lines are read by
`kernel_lines`, with names from BTF (`btf_scope`), and `kprobe_events` answers them as that kernel
(`probed_kernel`, `function_filter`) would. Rows (`rows`) go into a `staging` and on to a `ring`
or a `formats` class; `filter`, `trigger` and `histogram` are the kernel's: `hist_parser` reads a
histogram's line with its `hist_fields` and `hist_actions`, `hist_running` counts, and `synthetic`
events come of it; an `eventprobe` makes
one of another's fields (`fieldvalues`); `function` and `graph` follow calls, `finishedcalls` and
`functiontimes` sum them up (`spread`), a `callfilter` chooses among them, `sample` is an event of
the clock; a `ring_file` keeps what is not written yet, and `recovery` reads what a killed run has
left of it. `ring_pages` and `kernel_rows` make rows of what a running kernel has recorded.

Other tools' words: `marker_syntax` and `marker_words` are definitions of static probes (USDT),
`perfprobe` those of perf probe, `strace` the texts of system calls.
"""
