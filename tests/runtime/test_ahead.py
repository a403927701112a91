"""What is planned of models that are not downloaded."""

from __future__ import annotations

from framework.models.hub.facts import RemoteModel, RepoFile, RepoListing
from framework.planning.memory.remedies import Variant
from framework.runtime.ahead import smaller_variants
from framework.values.request import ModelSource

GIB = 2**30


def remote(**sizes: int | None) -> RemoteModel:
    """A repository with a model of 4 GiB and files of these sizes, `__` for a dash in their names."""
    files = tuple(
        RepoFile(f"{name.replace('__', '-')}.gguf", size_bytes) for name, size_bytes in sizes.items()
    )
    listing = RepoListing("org/M-GGUF", "a" * 40, files)
    return RemoteModel(ModelSource(repo="org/M-GGUF"), listing, "Q4_K_M", ("M-Q4_K_M.gguf",), (), 4 * GIB, 0)


def test_smaller_variants_come_largest_first() -> None:
    found = smaller_variants(remote(M__Q2_K=GIB, M__Q3_K_M=2 * GIB, M__Q4_K_M=4 * GIB, M__Q8_0=8 * GIB))
    assert found == (Variant("Q3_K_M", 2 * GIB), Variant("Q2_K", GIB))


def test_a_variant_of_unknown_size_is_none() -> None:
    assert smaller_variants(remote(M__Q2_K=None, M__Q4_K_M=4 * GIB)) == ()


def test_a_set_whose_size_is_known_in_part_is_none() -> None:
    parts = {"M__Q8_0__00001__of__00002": GIB, "M__Q8_0__00002__of__00002": None}
    assert smaller_variants(remote(M__Q4_K_M=4 * GIB, **parts)) == ()
