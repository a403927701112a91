"""The list of model files as JSON. What is in one of them has the shape of `paddock inspect` (13 §3)."""

from __future__ import annotations

from typing import Any

from framework.api.model_files import FilesAnswer, ModelFile
from framework.api.shapes.basic import optional_reason_json


def files_json(answer: FilesAnswer) -> dict[str, Any]:
    """All files, and the folders that were looked through."""
    return {
        "folders": [str(folder) for folder in answer.folders],
        "complete": answer.complete,
        "files": [_file_json(file) for file in answer.files],
    }


def _file_json(file: ModelFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "path": str(file.path),
        "bytes": file.size_bytes,
        "parts": file.parts,
        "role": file.role,
        "used_by": list(file.used_by),
        "read": file.is_read,
        "name": file.title,
        "architecture": file.architecture,
        "file_type": file.quantisation,
        "context_train": file.context_train,
        "fault": optional_reason_json(file.fault),
    }
