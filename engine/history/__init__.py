"""The past of a guest: what has come into it from outside, and how that is lived through again.

A guest is deterministic. What it does is told by its own instructions and by what its kernel did
to it between them: memory, registers, mappings, threads. `journal` is the record of the latter,
by the guest's clock; `recording` makes it while a guest runs, `registers` sees what system calls
and signals write to registers, `layout` which mappings have changed. `replaying` is a kernel that
carries no call out: it lets the program run and does to it what the journal says, so it needs
neither the host nor the files that the guest has used, and says so where the two differ. A
`timeline` goes to any `moment` of such a run, from the nearest `checkpoint` on, whose pages are
in a `pagestore`; `livecheckpoints` are those that the run itself has kept, so that nobody has to
live through it to have some. `recordfile` keeps a run in a file made of `pieces`, and reads one
that a stranger may have written: `recordbounds` limits the memory for that, and `entryshapes`
looks at what the journal in it says. `bootrecord` does the same for the boot of a machine.
`inputs` are what came from the host: with them `reenacting` brings a live guest to a moment, from
which it goes on by itself. For that a recording holds them too, with all that its guest saw of
its host's files (`hostfiles`); what its standard streams were they are once more
(`recordedstreams`), wherever they lead. `comparing` says where two journals part.
"""
