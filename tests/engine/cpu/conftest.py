"""Both ways in which the IA-64 core executes code."""

from collections.abc import Iterator

import ia64kit
import pytest

from engine.cpu.ia64.jit import available


@pytest.fixture(scope="module", params=[0, 1], ids=["python", "jit"])
def each_core(request: pytest.FixtureRequest) -> Iterator[None]:
    """Cores of `ia64kit` without machine code, and with machine code from the first run on."""
    if request.param and not available():
        pytest.skip("llvmlite is not installed")
    before, ia64kit.JIT_AFTER = ia64kit.JIT_AFTER, request.param
    yield
    ia64kit.JIT_AFTER = before
