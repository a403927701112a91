"""The repositories that a model file says it comes from (02 §5.6). Pure.

Shown by `paddock inspect`; nothing is asked of them: a file of this machine causes no request.
"""

from __future__ import annotations

from framework.models.file_names import repo_of_url
from framework.models.gguf_fields import OriginHints


def repositories(origin: OriginHints) -> tuple[str, ...]:
    """Names of repositories of the hub, the nearest first, each once."""
    candidates = (
        origin.hf_repository,
        repo_of_url(origin.source_url),
        repo_of_url(origin.source_repo_url),
        repo_of_url(origin.base_repo_url),
        _joined(origin.base_organization, origin.base_name),
        _joined(origin.organization, origin.basename),
    )
    return tuple(dict.fromkeys(repo for repo in candidates if repo))


def _joined(owner: str | None, name: str | None) -> str | None:
    parts = [(part or "").strip().replace(" ", "-") for part in (owner, name)]
    return "/".join(parts) if all(parts) else None
