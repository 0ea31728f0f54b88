"""Booted machines that are stopped, stepped and gone back in.

`past` moves a machine to and fro, from the moments that `checkpoints` keeps.
"""
