"""Processors: one protocol, Unicorn behind it, and the memory both sides share.

`ram` owns the guest's physical memory, `freeranges` finds room in it, `frozen` lets copies share
it, `hostmemory` asks the host for it; `pagetable` says which of it an address means;
`trap_actions` deal with breakpoints, a table for each address space, and `leads` are those at
which host code leads the guest on; `native` is the host machine code of the hottest callbacks,
and `host_samples` notes with it where the process spends its time;
`unicorn_library` opens Unicorn, `unicorn_live` finds its registers in memory and `unicorn_copies`
copies many at once, `unicorn_cpu` runs it, `unicorn_machines` holds what it needs per machine,
`unicorn_footprint` gives back what it need not keep, `unicorn_blocks` the ways between translated
blocks, `unicorn_float` and `unicorn_softfloat` what the host's processor computes in its place,
`unicorn_lent` the instructions that it does not have, within its translations, and `host_vectors`
outside of them; `unicorn_sieve` tells accesses to watched bytes apart, `unicorn_calls` has system
calls carried out without leaving it, `unicorn_trap_flag` tells whether a program steps itself;
`ia64` is a processor of our own. `unicorn_system` is a whole processor, for machines that boot a
kernel; `unicorn_places` tells where its code comes to, `unicorn_watches` which watched data it
accesses, and `unicorn_planted` has it fetch breakpoints. Nothing here knows of Linux.
"""
