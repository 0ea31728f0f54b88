"""Who called whom: from the registers of a stopped program to its chain of frames.

Every format that describes frames (DWARF CFI, frame pointers, the instructions themselves,
signal frames) yields one kind of row, `rows.CfiRow`, which one evaluator carries out on
registers and a function that reads memory. `unwinder.Unwinder` asks the formats in turn:
"not mine" sends it to the next one, a row that leads nowhere does the same, and the walk
ends with a reason, always. `returnchain` gives the addresses of plain frames alone, more quickly;
`framewriter` writes rows as a section for other debuggers.
Nothing is known here of probes: what a return address stands for that a return probe has
replaced, and where a pc in a slot belongs, is handed down.
"""
