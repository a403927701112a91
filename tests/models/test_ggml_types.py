"""Our tables of types say what the package of the format's makers says."""

from __future__ import annotations

from gguf.constants import GGML_QUANT_SIZES, LlamaFileType

from framework.models.ggml_types import FILE_TYPES, GGML_TYPES, type_name


def test_tensor_types_are_those_of_the_package() -> None:
    theirs = {int(number): (number.name, *sizes) for number, sizes in GGML_QUANT_SIZES.items()}
    assert {n: (t.name, t.block_elements, t.block_bytes) for n, t in GGML_TYPES.items()} == theirs


def test_file_types_are_those_of_the_package() -> None:
    theirs = {int(number): number.name.removeprefix("MOSTLY_") for number in LlamaFileType}
    assert theirs == {**FILE_TYPES, 0: "ALL_F32", 1024: "GUESSED"}


def test_an_unknown_type_is_shown_as_its_number() -> None:
    assert (type_name(12), type_name(9999)) == ("Q4_K", "9999")
