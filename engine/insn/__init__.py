"""Disassembling and assembling: the only users of Capstone and Keystone."""
