"""Flags of the group "model": which files, and what is changed about them."""

from __future__ import annotations

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.pairs import LORA_PATHS, OVERRIDES, SCALED_LORAS
from framework.nativeserver.flags.values import text_list, text_value

FLAGS: tuple[Flag, ...] = (
    valued("-m --model", "engine.model_path", text_value("FNAME"), "model file in GGUF format", env="MODEL"),
    valued(
        "-a --alias",
        "server.aliases",
        text_list("NAME,..."),
        "names of the model for clients",
        default="name of the model file",
        env="ALIAS",
        collects=True,
    ),
    valued(
        "--tags",
        "server.tags",
        text_list("TAG,..."),
        "tags of the model, shown to clients",
        env="TAGS",
        collects=True,
    ),
    valued(
        "-mm --mmproj",
        "line.projector",
        text_value("FNAME"),
        "projector for images and sound; this build has no media support, so that a start with one fails",
        env="MMPROJ",
    ),
    valued("--lora", "engine.loras", LORA_PATHS, "LoRA adapters, each with scale 1", collects=True),
    valued(
        "--lora-scaled",
        "engine.loras",
        SCALED_LORAS,
        "LoRA adapters and their scales (format: FNAME:SCALE,...)",
        collects=True,
    ),
    switch(
        "--lora-init-without-apply",
        "engine.lora_init_without_apply",
        "load LoRA adapters with scale 0; POST /lora-adapters applies them",
        default="disabled",
    ),
    valued(
        "--override-kv",
        "engine.metadata_overrides",
        OVERRIDES,
        "metadata used in place of the file's; types are int, float, bool and str",
        collects=True,
    ),
    switch(
        "--check-tensors",
        "engine.check_tensors",
        "look for invalid values in the tensors while loading",
        default="disabled",
    ),
)
