"""Whether a launch has a use for a drafter, and where it is looked for (05 §2.5, §5.6). Pure.

Called by runtime.fetching, which looks, and by the comparison, which has to know what was looked for.
"""

from __future__ import annotations

from framework.engines.spec_args import owns_speculation
from framework.manifest.spec_modes import MODES_WITH_DRAFTER
from framework.values.request import ModelRequest

# Those in which a drafter of the model's own repository is looked for.
HEAD_MODES = ("auto", "mtp", "mtp+ngram")


def takes_drafter(request: ModelRequest) -> bool:
    """Whether a drafter can come to be used: the policy decides, and its mode has a use for one."""
    return request.spec.mode in MODES_WITH_DRAFTER and not owns_speculation(request.extra_args)


def has_drafter_of_its_own(request: ModelRequest) -> bool:
    """Whether the drafter, if any, is the one of the model's repository."""
    is_hub, is_free = request.source.repo is not None, request.spec.drafter is None
    return is_hub and is_free and request.spec.mode in HEAD_MODES and takes_drafter(request)
