"""Probes: what may be probed (`site`, `lint`), and what plants and serves them.

The placement rules answer from a file alone, before anything runs. Linux asks less: its
uprobes accept the middle of an instruction, its kprobes only look for boundaries and for
instructions that cannot be stepped. In kernel mode the same rules find the same things, but
only what the kernel refuses is refused.
"""
