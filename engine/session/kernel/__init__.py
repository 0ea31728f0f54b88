"""Kernel images as `check`, `disasm` and `call` ask them.

`opened` puts together what belongs to one image: names, tables, live text, types and the rules
of its version. `lines` answers for definitions as that kernel's `kprobe_events` would, `exported`
writes them for other tools, `rows` judges functions and whole texts, `patched_rows` puts live
text beside the file's. `calling` calls functions, written as `call_syntax` reads them, in an
emulator.
"""
