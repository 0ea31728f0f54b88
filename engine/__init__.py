"""The engine: runs ELF guests and everything that is done to them.

Layers, each importing only those below: `cli`, `session`, `linux` (the guest's kernel),
`guest` (memory, modules, hooks), `cpu`, `image`, `insn`, `arch`, `errors`. The terminal
interface is a client of `engine.session` like the command line.
"""
