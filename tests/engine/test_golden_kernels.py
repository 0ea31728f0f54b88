"""Images answer as their kernels did: see `kernelscore`, which also says where they do not."""

from functools import lru_cache

import pytest
from kernelimages import DATA, GOLDEN, image_path
from kernelscore import IMAGES, SCORERS, ScoredKernel, files_of

KNOWN = {
    ("amd64-6.1", "text_patches"): 2,
    ("amd64-6.12", "text_patches"): 11,
    ("arm64-6.1", "text_patches"): 5,
}
"""Places that depend on the size of memory, or on which code has run first."""
LEFT = 0.01
"""The share of rows about modules that were loaded, at most."""


@lru_cache(maxsize=1)
def golden(folder: str) -> ScoredKernel:
    return ScoredKernel(DATA / folder, image_path(IMAGES[folder]))


@pytest.mark.slow
@pytest.mark.parametrize("folder", GOLDEN.values())
def test_images_answer_as_their_kernels_did(folder: str) -> None:
    kernel = golden(folder)
    files = files_of(kernel)
    assert len(files) >= (1 if folder == "uml-6.1" else 10)
    for name in files:
        score = SCORERS[name](kernel, name)
        assert score.total > 10
        assert score.total - score.equal <= KNOWN.get((folder, name), 0), score.differences
        if name not in ("kallsyms", "entries", "definitions"):
            assert score.modules <= LEFT * score.total
