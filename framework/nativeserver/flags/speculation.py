"""Flags of the group "speculation": which drafters are asked, and how drafts are judged (11 §3, §10, §18).

A type of llama-server that this build lacks is accepted; the engine drops it with a reason (12 §19.5).
"""

from __future__ import annotations

from typing import Any

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.knobs import knob
from framework.nativeserver.flags.meant import ask, meant_word
from framework.nativeserver.flags.values import Value, choice, mapped, number, shown, whole

BUILT_TYPES = (
    "draft-simple",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)
OTHER_TYPES = ("draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark")
"""Read, and dropped."""
NONE, DEFAULT_TYPE, OF_A_MODEL = "none", "ngram-mod", "draft-simple"
LISTED_TYPES = (NONE, *BUILT_TYPES)
KNOWN_TYPES = (*LISTED_TYPES, *OTHER_TYPES)
TYPES_TARGET = "line.speculation"

N_MAX_TARGET, N_MIN_TARGET = "speculation.n_max", "speculation.n_min"
N_MAX_FLAG, N_MIN_FLAG = "--spec-draft-n-max", "--spec-draft-n-min"
STRICT_TARGET = "speculation.strict"
N_MAX, N_MIN = 3, 0
MOST_DRAFTED = 64
MOST_BRANCHED, MOST_RANKED, MOST_BRANCHES = 64, 10, 32
OF_THE_REQUEST = -1.0
"""The drafter's temperature where none is set."""
AS_DRAFTED = -1
"""Copies of a running state where no number of them is set."""
MOST_SNAPSHOTS = 64


def _types(text: str) -> tuple[str, ...]:
    """Types of one value; with `none` among them it stands for none, as in llama-server."""
    names = tuple(text.split(","))
    for name in names:
        if name not in KNOWN_TYPES:
            raise ValueError(
                f"unknown speculative type: {shown(name)}{ask(meant_word(name, KNOWN_TYPES))}"
                f"\nallowed are {', '.join(LISTED_TYPES)}"
                f"\naccepted and dropped, since this build lacks them: {', '.join(OTHER_TYPES)}"
            )
    return () if NONE in names else names


def _temperature(text: str) -> float:
    return OF_THE_REQUEST if text == "auto" else float(_or_auto(number(0), text))


def _snapshots(text: str) -> int:
    return AS_DRAFTED if text == "auto" else int(_or_auto(whole(0, MOST_SNAPSHOTS), text))


def _or_auto(value: Value, text: str) -> Any:
    try:
        return value.read(text)
    except ValueError as error:
        raise ValueError(f"{error}; 'auto' is allowed too") from error


FLAGS: tuple[Flag, ...] = (
    valued(
        "--spec-type",
        TYPES_TARGET,
        Value(",".join(LISTED_TYPES), _types),
        "drafters in the order in which they are asked; lists add up; draft-simple needs --model-draft;"
        " embeddings are not drafted",
        default=NONE,
        env="SPEC_TYPE",
        collects=True,
        adds_to_environment=True,
    ),
    switch(
        "--spec-default",
        TYPES_TARGET,
        f"{DEFAULT_TYPE} with its usual lengths, whatever stands before it",
        collects=True,
        adds_to_environment=True,
        constant=(DEFAULT_TYPE,),
    ),
    valued(
        N_MAX_FLAG,
        N_MAX_TARGET,
        whole(1, MOST_DRAFTED),
        "longest draft of a draft model, in tokens, and the most that a request's speculative.n_max may ask"
        " for; n-gram types have lengths of their own",
        default=str(N_MAX),
        env="SPEC_DRAFT_N_MAX",
    ),
    valued(
        N_MIN_FLAG,
        N_MIN_TARGET,
        whole(0, MOST_DRAFTED),
        "shortest draft of a draft model that is of use; n-gram types have lengths of their own",
        default=str(N_MIN),
        env="SPEC_DRAFT_N_MIN",
    ),
    valued(
        "--spec-draft-p-min --draft-p-min",
        "speculation.p_min",
        number(0, 1, "P"),
        "probability below which a draft model stops",
        default="0.0",
        env="SPEC_DRAFT_P_MIN",
    ),
    knob(
        "--spec-branch-budget",
        "speculation.branch_budget",
        whole(0, MOST_BRANCHED),
        0,
        "tokens of side chains that a draft may have; they need --kv-unified",
    ),
    knob(
        "--spec-draft-topk",
        "speculation.topk",
        whole(1, MOST_RANKED),
        1,
        "likeliest tokens of a position that may start a side chain; at least 2 with a budget",
    ),
    knob(
        "--spec-branch-seqs",
        "speculation.branch_seqs",
        whole(1, MOST_BRANCHES),
        8,
        "side chains of all slots at a time",
    ),
    valued(
        "--spec-draft-p-split --draft-p-split",
        "speculation.p_split",
        number(0, 1, "P"),
        "least probability of a side chain",
        default="0.1",
        env="SPEC_DRAFT_P_SPLIT",
    ),
    knob(
        "--spec-draft-temp",
        "speculation.draft_temperature",
        Value("[auto|N]", _temperature),
        "auto",
        "temperature of a draft model; auto is the request's where that helps, else 0",
    ),
    knob(
        "--spec-verify",
        "speculation.verify",
        choice("exact", "rejection", "match-first"),
        "rejection",
        "how drafts with probabilities are judged; match-first accepts more, and is only nearly right",
    ),
    knob(
        "--spec-reduced",
        "speculation.reduced",
        choice("auto", "off", "host", "device"),
        "auto",
        "where the best tokens of a row are found that a draft is judged by; off judges it by whole rows",
    ),
    knob(
        "--spec-reduced-drafters",
        "speculation.reduced_drafters",
        choice("all", "block"),
        "all",
        "whose drafts are judged by the best tokens alone; block: block drafters', none of which is built",
    ),
    knob(
        "--spec-grammar",
        "speculation.grammar_blocks",
        mapped({"allow": False, "block": True}, "{allow,block}"),
        "allow",
        "whether anything is drafted while a grammar holds",
    ),
    knob(
        "--spec-rs-snapshots",
        "speculation.rs_snapshots",
        Value("[auto|N]", _snapshots),
        "auto",
        "drafted tokens that a recurrent model steps back without computing them again, each of which takes"
        " the memory of a slot's state once more; auto is as many as a draft model drafts, at most 8",
    ),
    switch(
        "--spec-strict",
        STRICT_TARGET,
        "a type that can't run ends the start, instead of being dropped",
        default="disabled",
        env="SPEC_STRICT",
    ),
)
