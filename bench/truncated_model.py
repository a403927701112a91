"""A drafter for the benches: the first layers of a model, with its own vocabulary."""

from __future__ import annotations

import re
from pathlib import Path

from gguf import GGUFReader, GGUFValueType, GGUFWriter

OWN_FIELDS = re.compile(r"GGUF\.|general\.architecture$")
LAYER = re.compile(r"blk\.(\d+)\.")


def truncate(source: Path, target: Path, n_layers: int) -> None:
    """Write `target`: the model of `source` with its first `n_layers` layers, weights unchanged."""
    reader = GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if OWN_FIELDS.match(name):
            continue
        value = n_layers if name == f"{architecture}.block_count" else field.contents()
        inner = field.types[-1] if field.types[0] is GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        layer = LAYER.match(tensor.name)
        if layer is None or int(layer[1]) < n_layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
