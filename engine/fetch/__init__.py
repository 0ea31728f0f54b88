"""Fetch arguments: `compile` reads them in the kernel's language, `evaluate` carries them out.

What they are in between is plain data (`engine.arch.program`), so that code generated into the
guest can start from the same.
"""
