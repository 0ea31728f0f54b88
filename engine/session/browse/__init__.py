"""Code to look around in while the program runs elsewhere, or not at all.

`listing` makes lines of disassembly, `code_rows` rows that can be entered anywhere, `browser`
answers a front end's questions about code, names and verdicts from the files.
"""
