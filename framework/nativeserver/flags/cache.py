"""Flags of the group "cache": what is kept of earlier prompts."""

from __future__ import annotations

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.text_files import DIRECTORY
from framework.nativeserver.flags.values import number, whole

FLAGS: tuple[Flag, ...] = (
    switch(
        "--cache-prompt",
        "request.cache_prompt",
        "reuse the beginning of a prompt that a slot knows",
        off="--no-cache-prompt",
        default="enabled",
        env="CACHE_PROMPT",
    ),
    valued(
        "--cache-reuse",
        "request.n_cache_reuse",
        whole(0),
        "fewest tokens of a chunk that is reused by shifting",
        default="0, 0 = none",
        env="CACHE_REUSE",
    ),
    valued(
        "-cram --cache-ram",
        "engine.cache_ram_mib",
        whole(-1),
        "MiB of host memory for prompts of other requests",
        default="8192, -1 = no limit, 0 = none",
        env="CACHE_RAM",
    ),
    switch(
        "--cache-idle-slots",
        "engine.cache_idle_slots",
        "save idle slots to that cache when a request starts",
        off="--no-cache-idle-slots",
        default="enabled",
        env="CACHE_IDLE_SLOTS",
    ),
    valued(
        "-ctxcp --ctx-checkpoints --swa-checkpoints",
        "engine.n_ctx_checkpoints",
        whole(0, 4096),
        "most checkpoints of a slot",
        default="32",
        env="CTX_CHECKPOINTS",
    ),
    valued(
        "-cms --checkpoint-min-step --checkpoint-every-n-tokens",
        "engine.checkpoint_min_step",
        whole(-1),
        "fewest tokens between checkpoints",
        default="8192, -1 = none inside a prompt",
        env="CHECKPOINT_MIN_SPACING_NT",
    ),
    valued(
        "-sps --slot-prompt-similarity",
        "engine.slot_prompt_similarity",
        number(0, 1),
        "share of a prompt that a slot has to know to be chosen",
        default="0.10, 0 = any",
    ),
    valued("--slot-save-path", "server.slot_save_path", DIRECTORY, "folder for saved slots", default="none"),
)
