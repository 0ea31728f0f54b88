"""Attach points: where probes run, as scripts write it."""

from engine.trace.bpftrace.text import Remarks, Span
from engine.trace.bpftrace.tree import AttachPoint


def attach_point(text: str, span: Span, remarks: Remarks) -> AttachPoint:
    """An attach point."""
    parts = text.split(":")
    return AttachPoint(span, text, parts[0].lower(), tuple(parts[1:]))
