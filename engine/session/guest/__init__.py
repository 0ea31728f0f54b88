"""A guest from its start to its end: built from a configuration, run, probed.

`loading` and `session` wire the processor, the memory and the guest's kernel together. `probing`
adds the probes when somebody asks for them: in each address space their machinery and what stands
for them there is a `probed_space`, whose code `guest_code` knows. `terminal` is a terminal of the
guest's own.
"""
