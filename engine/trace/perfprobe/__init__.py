"""`perf probe`: its places and arguments, carried out as perf 6.1 does, oddities included.

The source of truth is tools/perf/util of Linux 6.1: probe-event.c reads commands (`commands`,
`name_patterns`) and writes definitions (`perf_events`), probe-finder.c finds the places
(`place_search`) and turns variables into fetch arguments (`fetch_writer`) with the entries of the
debug information as elfutils shows them (`function_entries`, `unit_lines`). `variable_lists` and
`line_lists` are `perf probe -V` and `-L`. What perf would read wrongly is told
(`CommandOutcome.wrong`): a listing shows perf's own text, a probe that is placed here is refused
or mended instead.
"""
