"""A program's files without a guest: names, places and verdicts, from the files alone.

`libraries` finds the files, `places` turns what a user types into addresses in them (`ranges`,
`inlined`, `cold_parts`, `names` and `lookup` help), `verdicts` judges whether a probe can stand
there, `completion` offers what may be typed, `paths` tells host paths from guest paths, and
`inspection` opens all of it for commands that run nothing.
"""
