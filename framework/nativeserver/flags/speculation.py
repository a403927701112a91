"""Flags of speculation as llama-server has them (12 §19.1).

This build drafts nothing: values are checked, and types that are asked for are dropped with a reason (§19.5).

Their help is short, and a program that looks for a flag does not find them: what is listed would be used.
"""

from __future__ import annotations

from framework.nativeserver.flags.context import TYPE
from framework.nativeserver.flags.device import LAYERS, MOST_LAYERS
from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.pairs import DEVICES, PLACEMENTS
from framework.nativeserver.flags.values import Value, number, shown, text_value, whole

TYPES = (
    "none",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)
DEFAULT_TYPE = "ngram-mod"


def _types(text: str) -> tuple[str, ...]:
    """Types of one value; with `none` among them it stands for none, as in llama-server."""
    names = tuple(text.split(","))
    for name in names:
        if name not in TYPES:
            raise ValueError(f"unknown speculative type: {shown(name)}, allowed are {', '.join(TYPES)}")
    return () if "none" in names else names


def _unused(names: str, value: Value | None, env: str = "") -> Flag:
    return Flag(tuple(names.split()), "", "", value, env=env, role="unused")


COUNT = whole(0)
SHARE = number(0, 1, "P")
FILE_NAME = text_value("FNAME")

FLAGS: tuple[Flag, ...] = (
    valued(
        "--spec-type",
        "line.speculation",
        Value("TYPE", _types),
        "type of speculation; this build drafts nothing, and goes on without a type that is asked for",
        default="none",
        env="SPEC_TYPE",
        collects=True,
        adds_to_environment=True,
    ),
)
UNUSED: tuple[Flag, ...] = (
    switch(
        "--spec-default",
        "line.speculation",
        "",
        role="unused",
        collects=True,
        adds_to_environment=True,
        constant=(DEFAULT_TYPE,),
    ),
    _unused("--spec-draft-model -md --model-draft", FILE_NAME, "SPEC_DRAFT_MODEL"),
    _unused("--spec-draft-hf -hfd -hfrd --hf-repo-draft", text_value("REPO"), "SPEC_DRAFT_HF_REPO"),
    _unused("--spec-draft-n-max", COUNT, "SPEC_DRAFT_N_MAX"),
    _unused("--spec-draft-n-min", COUNT, "SPEC_DRAFT_N_MIN"),
    _unused("--spec-draft-p-min --draft-p-min", SHARE, "SPEC_DRAFT_P_MIN"),
    _unused("--spec-draft-p-split --draft-p-split", SHARE, "SPEC_DRAFT_P_SPLIT"),
    _unused("--spec-draft-ngl -ngld --gpu-layers-draft --n-gpu-layers-draft", LAYERS, "N_GPU_LAYERS_DRAFT"),
    _unused("--spec-draft-device -devd --device-draft", DEVICES),
    _unused("--spec-draft-type-k -ctkd --cache-type-k-draft", TYPE, "SPEC_DRAFT_CACHE_TYPE_K"),
    _unused("--spec-draft-type-v -ctvd --cache-type-v-draft", TYPE, "SPEC_DRAFT_CACHE_TYPE_V"),
    _unused("--spec-draft-threads -td --threads-draft", whole()),
    _unused("--spec-draft-threads-batch -tbd --threads-batch-draft", whole()),
    _unused("--spec-draft-override-tensor -otd --override-tensor-draft", PLACEMENTS),
    _unused("--spec-draft-cpu-moe -cmoed --cpu-moe-draft", None, "SPEC_DRAFT_CPU_MOE"),
    _unused(
        "--spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft",
        whole(0, MOST_LAYERS),
        "SPEC_DRAFT_N_CPU_MOE",
    ),
    *(_unused(f"--spec-ngram-mod-{knob}", COUNT) for knob in ("n-match", "n-min", "n-max")),
    *(
        _unused(f"--spec-ngram-{kind}-{knob}", COUNT)
        for kind in ("simple", "map-k", "map-k4v")
        for knob in ("size-n", "size-m", "min-hits")
    ),
    _unused("-lcs --lookup-cache-static", FILE_NAME),
    _unused("-lcd --lookup-cache-dynamic", FILE_NAME),
)
