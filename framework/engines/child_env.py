"""The environment of an engine process (06 §7.1-7.4). Pure: facts about libraries come in as a value.

Called by planning (`child_environment`), by runtime at the spawn (`spawn_environment`), by the probes
(`probe_environment`) and by whoever starts a probe (`without_secrets`). An engine's own variables change its
settings behind the plan, so only declared or let-through ones reach it; secrets of the manager never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from framework.engines.args import names_hub_repo
from framework.engines.library_path import LibraryPath, with_libraries
from framework.engines.spec_args import spec_types
from framework.manifest.environment import (
    ENGINE_KEY,
    ENGINE_KEY_FILE,
    ENGINE_PREFIX,
    INSTANCE_MARK,
    PLACEMENT_VARIABLES,
    SPEC_TYPE_VARIABLE,
    THREADS_VARIABLE,
)
from framework.values.drafter_variables import DRAFTER_VARIABLES
from framework.values.plan import Section
from framework.values.request import ModelRequest
from framework.values.speculation import drafts_by_model

OWN_PREFIX = "PADDOCK_"
HUB_TOKENS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})


def without_secrets(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The manager's environment without the variables that `env:` references of a manifest name (06 §7.1)."""
    secrets = frozenset(names)
    return {name: value for name, value in environ.items() if name not in secrets}


def base_environment(
    environ: Mapping[str, str],
    *,
    secret_names: Iterable[str] = (),
    passthrough: Sequence[str] = (),
    keep_hub_tokens: bool = False,
) -> dict[str, str]:
    """What a child may inherit from the manager (06 §7.1, §7.2), before anything is declared.

    `passthrough` holds names, or prefixes that end in `*`; it lets engine variables through, never secrets.
    """
    secrets = frozenset(secret_names) | (frozenset() if keep_hub_tokens else HUB_TOKENS)

    def inherits(name: str) -> bool:
        if name.startswith(OWN_PREFIX) or name in secrets:
            return False
        if name.startswith(ENGINE_PREFIX) or name == ENGINE_KEY:
            return any(_matches(name, pattern) for pattern in passthrough)
        return True

    return {name: value for name, value in environ.items() if inherits(name)}


def declared_environment(
    request: ModelRequest, environ: Mapping[str, str], *, secret_names: Iterable[str] = ()
) -> dict[str, str]:
    """The variables all readers of this model's settings use: inherited, then the engine's, then its own."""
    base = base_environment(
        environ,
        secret_names=secret_names,
        passthrough=request.engine.env_passthrough,
        keep_hub_tokens=names_hub_repo(request.extra_args),
    )
    return {**base, **request.engine.env, **request.env}


def child_environment(
    request: ModelRequest,
    environ: Mapping[str, str],
    libraries: LibraryPath,
    sections: Iterable[Section],
    *,
    secret_names: Iterable[str] = (),
) -> dict[str, str]:
    """The whole environment of a plan, in the order of 06 §7.3, without key and mark of a launch."""
    env = declared_environment(request, environ, secret_names=secret_names)
    for name in _overruled(request, sections):
        env.pop(name, None)
    return with_libraries(env, libraries)


def spawn_environment(env: Mapping[str, str], *, api_key: str | None, mark: str) -> dict[str, str]:
    """A plan's environment for one launch: its key (None = no key), and the mark its process is known by.

    The key goes by variable, since a flag is readable in the process list. A key file would be valid
    beside it, so its variable is removed.
    """
    launched = {**env, INSTANCE_MARK: mark}
    if api_key is not None:
        launched.pop(ENGINE_KEY_FILE, None)
        launched[ENGINE_KEY] = api_key
    return launched


def probe_environment(environ: Mapping[str, str], libraries: LibraryPath) -> dict[str, str]:
    """For asking a binary about itself: nothing that changes its settings, devices in bus order (04 §2.5).

    REQUIRES: `environ` holds no secret of a manifest (`without_secrets`); a probe does not know their names.
    """
    return with_libraries({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **base_environment(environ)}, libraries)


def _overruled(request: ModelRequest, sections: Iterable[Section]) -> list[str]:
    """Variables that would say something else than the line, or say it twice."""
    tokens = [token for section in sections for token in section.tokens]
    # Types of speculation add up over flags and variable, and nothing on the line takes one away again; the
    # manifest's mode and the user's own flags both outrank a variable, so it goes in every case (05 §7.8).
    names = [SPEC_TYPE_VARIABLE]
    if not drafts_by_model(",".join(spec_types(tokens))):
        names += DRAFTER_VARIABLES  # some builds load a drafter, or use it, without any type for it
    if request.memory_mode == "manual":
        names += PLACEMENT_VARIABLES
    if "--threads" not in tokens:
        names.append(THREADS_VARIABLE)
    return names


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
