"""Output formats of a trace. A new one is a class of `base.Format` and a line in `FORMATS`."""

from engine.trace.formats.base import Format, Names
from engine.trace.formats.ftrace import FtraceFormat

FORMATS: tuple[type[Format], ...] = (FtraceFormat,)

__all__ = ["FORMATS", "Format", "Names"]
