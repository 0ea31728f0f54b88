"""A program's files without a guest: names, places and verdicts, from the files alone.

`libraries` finds the files, `functions` knows what is in them, `places` turns what a user types
into addresses (`lookup` does for the variables of a definition), `verdicts` judges whether a probe
can stand there, `paths` tells host paths from guest paths, and `inspection` opens all of it for
commands that run nothing.
"""
