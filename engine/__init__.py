"""The engine: runs ELF guests and everything that is done to them.

Layers, each importing only those below: `cli` and `worker` (a session in a thread of its own),
`session`, `trace` (definitions, events, formats), `probes` and `unwind`, `linux` (the guest's
kernel), `guest` (memory, modules, hooks), `fetch`, `cpu`, `image`, `insn`, `arch`, `errors`,
`escaping` (text of guests made harmless). The terminal interface is a client of `engine.session`
and `worker` like the command line.
"""
