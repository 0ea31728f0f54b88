"""A program's files without a guest: names, places and verdicts, from the files alone.

`opening` finds and opens the guest's own file, `libraries` those it is loaded with and, by
`file_globs`, those of a pattern; `functions` knows what is in them, `places` turns what a user
types into addresses (`lookup` does for the variables of a definition), `verdicts` judges whether a
probe can stand there (`outcomes` of whole functions at once), and `return_places` whether a
trampoline would damage the program. `markers` are static probes (USDT), `marker_places` where they
stand, and `perf_commands` spell out definitions of perf probe; `placeless_lines` judge events that
have no place. `implementations` are the code that indirect functions stand for, as whoever calls
their resolvers tells it. `listing` makes lines of disassembly. `recorded` programs are those in
recordings of their runs, and those in the `initramfs` of a kernel that is the guest are told by
the content of their pages.
"""
