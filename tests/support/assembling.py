"""A mark for tests that turn text into machine code, which Keystone does where it is installed."""

from importlib import import_module
from typing import Final

import pytest

try:
    import_module("keystone")
except ImportError:
    _has_keystone = False
else:
    _has_keystone = True

UNASSEMBLED: Final = "keystone-engine is not installed (the extra assembler)"
"""Reason of tests that are skipped."""
assembles: Final = pytest.mark.skipif(not _has_keystone, reason=UNASSEMBLED)
"""Skips a test that assembles where nobody can."""
