"""Why a model of a hub cannot be had, in words, with what to do (02 §10.6, 06 §14.2). Pure.

The one place of these sentences. Tokens are named by their variable, never shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framework.values.reason import Failure, Reason, Refused

LOG_IN = "set HF_TOKEN to a token that may read it, or log in with `hf auth login`"
CHANGED = "changed"
"""Evidence of a refusal that another try of the same download cannot lift."""
GB = 1e9
HOUR_S = 3600.0
# Statuses from here on pass by themselves; those below do not.
SERVER_ERROR = 500


def no_such_repo(repo: str, status: int) -> Refused:
    """The hub knows no such repository, or does not show it to us: it says the same for both."""
    return _refused(
        "model_missing",
        f"The hub has no repository {repo}, or it is private.",
        f"Correct the name; for a private repository {LOG_IN}.",
        {"repo": repo, "status": status},
    )


def no_such_file(repo: str, file: str, near: Sequence[str]) -> Refused:
    """The repository has no such file."""
    hint = f" It has {', '.join(near)}." if near else " It has no GGUF files."
    return _refused(
        "model_missing",
        f"{repo} has no file {file}.{hint}",
        "Name one of its files, or a quantisation: hf:owner/repo:QUANT.",
        {"repo": repo, "file": file, "near": list(near)},
    )


def no_such_revision(repo: str) -> Refused:
    """The revision is gone: force-pushed or an empty repository."""
    return _refused(
        "model_missing",
        f"{repo} has no files on its main branch.",
        "Look at the repository's page: it may be empty, or its branch may have another name.",
        {"repo": repo},
    )


def changed(repo: str, file: str) -> Refused:
    """The commit that was listed is gone before all of its files were here."""
    return _refused(
        "download_failed",
        f"{repo} was changed while it was fetched, and {file} is not to be had any more as it was listed.",
        "Try again: what is the same is not fetched again.",
        {"repo": repo, "file": file, "cause": CHANGED},
        retryable=True,
    )


def gated(repo: str) -> Refused:
    """Its terms have to be accepted first."""
    return _refused(
        "download_failed",
        f"{repo} is gated: its owner gives access on request.",
        f"Accept the terms on its page, then {LOG_IN}.",
        {"repo": repo, "cause": "gated"},
    )


def not_allowed(repo: str, status: int, *, had_token: bool) -> Refused:
    """401 or 403."""
    message = (
        f"The hub does not let the token of this machine read {repo} (HTTP {status})."
        if had_token
        else f"The hub wants a login for {repo} (HTTP {status})."
    )
    remedy = f"{LOG_IN[0].upper()}{LOG_IN[1:]}."
    return _refused("download_failed", message, remedy, {"repo": repo, "status": status, "token": had_token})


def disabled(repo: str) -> Refused:
    """The hub has taken it down."""
    return _refused(
        "download_failed", f"The hub has disabled {repo}.", "Choose another repository.", {"repo": repo}
    )


def rate_limited(repo: str, wait_s: float | None) -> Refused:
    """429. `wait_s` is what the hub asked for."""
    when = "in some minutes" if wait_s is None else f"in {wait_s:.0f} s" if wait_s <= HOUR_S else "later"
    return _refused(
        "download_failed",
        f"The hub limits how often this machine may ask (HTTP 429), while fetching {repo}.",
        f"Try again {when}; with HF_TOKEN set the limits are higher.",
        {"repo": repo, "status": 429, "retry_after_s": wait_s},
        retryable=True,
    )


def unreachable(repo: str, endpoint: str, cause: str) -> Refused:
    """The network, or the hub, is down."""
    return _refused(
        "download_failed",
        f"The hub at {endpoint} cannot be reached for {repo}: {cause}.",
        "Check the network, HTTPS_PROXY and HF_ENDPOINT; HF_HUB_OFFLINE=1 uses the cache alone.",
        {"repo": repo, "endpoint": endpoint, "cause": cause},
        retryable=True,
    )


def broken_off(repo: str, file: str, have_bytes: int, total_bytes: int | None, cause: str) -> Refused:
    """A transfer ended early, again and again."""
    of_total = f" of {total_bytes / GB:.1f} GB" if total_bytes else ""
    return _refused(
        "download_failed",
        f"The download of {file} from {repo} broke off after {have_bytes / GB:.1f} GB{of_total}: {cause}.",
        "Try again: it goes on where it stopped.",
        {"repo": repo, "file": file, "have_bytes": have_bytes, "total_bytes": total_bytes, "cause": cause},
        retryable=True,
    )


def wrong_content(repo: str, file: str) -> Refused:
    """The whole file came and is not what the hub promised; what was fetched has been dropped."""
    return _refused(
        "download_failed",
        f"{file} from {repo} arrived damaged: its checksum is not that of the hub.",
        "Try again: it is fetched anew. If it repeats, look for a proxy that changes answers.",
        {"repo": repo, "file": file, "cause": "checksum"},
        retryable=True,
    )


def no_header(repo: str, file: str, cause: str) -> Refused:
    """What was fetched of a file is no header that a stand-in could be made of."""
    return _refused(
        "bad_model_file",
        f"Nothing can be measured of {file} in {repo}: {cause}.",
        "Name another variant or file; `paddock pull` fetches it as it is.",
        {"repo": repo, "file": file, "cause": cause},
    )


def stand_in_unwritable(directory: str, cause: str) -> Refused:
    """The directory of stand-ins cannot be written."""
    return _refused(
        "download_failed",
        f"Headers cannot be kept in {directory}: {cause}.",
        "Correct its permissions, or set XDG_CACHE_HOME to a directory of your own.",
        {"directory": directory, "cause": cause},
    )


def hub_error(repo: str, cause: str, status: int | None = None) -> Refused:
    """Any other answer of the hub."""
    return _refused(
        "download_failed",
        f"The hub failed for {repo}: {cause}.",
        "Try again later.",
        {"repo": repo, "status": status, "cause": cause},
        retryable=status is None or status >= SERVER_ERROR,
    )


def no_hub(repo: str, endpoint: str, found: str) -> Refused:
    """Something else answers in the hub's place: a login page of a network, or another kind of server."""
    return _refused(
        "download_failed",
        f"{endpoint} does not answer like a hub for {repo}: {found}.",
        "Check HF_ENDPOINT, and whether this network wants a login before it lets one out.",
        {"repo": repo, "endpoint": endpoint, "cause": found},
        retryable=True,
    )


def listing_too_large(repo: str, limit: str) -> Refused:
    """More than any repository of models has: a data set, or no hub at all."""
    return _refused(
        "download_failed",
        f"What the hub sends about {repo} is too large to be looked through: more than {limit}.",
        "Fetch the file by other means and name it as the source, or correct HF_ENDPOINT.",
        {"repo": repo, "cause": "too large"},
    )


def offline(text: str, why: str) -> Refused:
    """Not in the cache, and the network must not be used. A name that does not resolve may come back."""
    by_choice = why.startswith(("HF_", "TRANSFORMERS_", "PADDOCK_"))
    because = f"{why} says to stay offline" if by_choice else f"the hub's host {why} has no address"
    remedy = (
        f"Unset {why}, or fetch it elsewhere with `paddock pull` and copy the cache."
        if by_choice
        else "Check the network and HF_ENDPOINT."
    )
    return _refused(
        "model_missing" if by_choice else "download_failed",
        f"{text} is not in the cache, and {because}.",
        remedy,
        {"source": text, "offline": why},
        retryable=not by_choice,
    )


def not_here(text: str, *, count: int = 1) -> Refused:
    """Asked about without the wish to fetch it; `text` names `count` sources."""
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    return _refused(
        "model_missing",
        f"{text} {verb} not downloaded yet.",
        f"`paddock pull` fetches {them}; so does the first start of the model. `paddock plan --measure` says"
        " whether it would fit, from its headers.",
        {"source": text},
    )


def busy(repo: str, holder: str, waited_s: float) -> Refused:
    """Another process downloads from the repository and gets nowhere."""
    return _refused(
        "repo_busy",
        f"{holder} downloads from {repo}, and nothing has arrived for {waited_s:.0f} s.",
        "Wait for it, or end it; what it has fetched is kept.",
        {"repo": repo, "holder": holder, "waited_s": waited_s},
        retryable=True,
    )


def disk_full(
    repo: str, directory: str, need_bytes: int, free_bytes: int, instead: tuple[str, int] | None
) -> Refused:
    """It does not fit on the disk of the cache. `instead`: name and missing bytes of a variant that would."""
    other = f", or use {instead[0]}, which needs {instead[1] / GB:.1f} GB" if instead else ""
    none = "" if instead else " No variant of the repository fits."
    return _refused(
        "disk_full",
        f"{need_bytes / GB:.1f} GB of {repo} are missing and {directory} has {free_bytes / GB:.1f} GB free."
        f"{none}",
        f"Free some space, or set HF_HUB_CACHE to a larger disk{other}.",
        {
            "repo": repo,
            "directory": directory,
            "need_bytes": need_bytes,
            "free_bytes": free_bytes,
            "instead": instead[0] if instead else None,
        },
    )


def cache_unusable(directory: str, cause: str) -> Refused:
    """The cache cannot be written."""
    return _refused(
        "download_failed",
        f"The cache {directory} cannot be written: {cause}.",
        "Correct its permissions, or set HF_HUB_CACHE to a directory of your own.",
        {"directory": directory, "cause": cause},
    )


def client_missing(python: str) -> Refused:
    """The hub's client library is not installed."""
    return _refused(
        "download_failed",
        "Models of a hub need the Python package huggingface_hub, which is not installed.",
        f"Install it: {python} -m pip install huggingface_hub.",
        {},
    )


def worker_failed(repo: str, cause: str) -> Refused:
    """The process that downloads ended without an answer."""
    return _refused(
        "download_failed",
        f"The download of {repo} ended without an answer: {cause}.",
        "Try again: it goes on where it stopped.",
        {"repo": repo, "cause": cause},
        retryable=True,
    )


def _refused(
    code: str, message: str, remedy: str, evidence: Mapping[str, Any], *, retryable: bool = False
) -> Refused:
    return Refused(Failure(Reason(code, message, remedy, "error", evidence), retryable=retryable))
