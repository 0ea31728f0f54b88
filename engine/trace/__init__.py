"""Definitions of probes, the events they record, and the formats these are written in."""
