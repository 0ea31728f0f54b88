"""Fetch arguments: `compile` reads them in the kernel's language, `evaluate` carries them out.

The language is that of an `era`, the kernel's release; `casts` are in it from 7.3 on.

What they are in between is plain data (`engine.arch.program`), so that code generated into the
guest can start from the same.
"""
