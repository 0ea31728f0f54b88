"""Runs compared and timed: the probe-effect differ and the cost of a hit.

`effect` runs a guest plain and probed over the same inputs (`replay`) and finds where the two
part; `bench` measures what a hit costs here, `bench_peers` what it costs elsewhere.
"""
