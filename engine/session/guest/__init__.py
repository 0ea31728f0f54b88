"""A guest from its start to its end: built from a configuration, run, probed.

`session` wires the processor, the memory and the guest's kernel together, `probing` adds the
probes' machinery when somebody asks for it, `terminal` is a terminal of the guest's own.
"""
