"""`paddock bench`: tokens per second and time to first token, with the model's policy and without (00 §7).

Runs the model by itself, so it refuses while `paddock up` runs the same manifest. What it measures without
speculation is what the next `up` compares with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from framework.api.shapes import speculation_json
from framework.commands import parsers
from framework.commands.ending import run_to_its_end
from framework.commands.failure import NOT_SO, OK, CommandFailed
from framework.commands.local import model_id, require_manifest
from framework.commands.options import JsonOption, ManifestOption, ModelArgument
from framework.commands.output import note, print_json, print_reason, print_table, say
from framework.planning.speculation.profit import DEFAULT_LIMITS
from framework.proxy.errors import ProxyError
from framework.state_dir import StateDirError
from framework.trial import Effort, NothingTimed, Timing, Trial, run_trial
from framework.values.rounding import rounded

# With two workloads as many as the yield watch wants of each side (05 §11.7).
REQUESTS, MOST_REQUESTS = 10, 1000
TOKENS, MOST_TOKENS = 128, 100_000
MOST_AT_ONCE = 64
SHOWN_DIGITS = 4
# Of less than this the quotient is that of two chances.
LEAST_TOKENS = 64
LEAST_ANSWER = DEFAULT_LIMITS.min_tokens
TOO_FEW, NOTHING_DRAFTED = "too few tokens", "nothing was drafted"
COLUMNS = (
    "WORKLOAD",
    "ANSWERS",
    "TOKENS/S WITHOUT",
    "WITH",
    "SPEED-UP",
    "FIRST TOKEN WITHOUT",
    "WITH",
    "ACCEPTED",
)
RequestsOption = Annotated[
    int,
    typer.Option(
        "--requests",
        metavar="NUMBER",
        parser=parsers.whole_number("--requests", 1, MOST_REQUESTS),
        help="Answers of each workload.",
    ),
]
TokensOption = Annotated[
    int,
    typer.Option(
        "--tokens",
        metavar="NUMBER",
        parser=parsers.whole_number("--tokens", 2, MOST_TOKENS, "tokens"),
        help="Length of each answer.",
    ),
]
AtOnceOption = Annotated[
    int,
    typer.Option(
        "--at-once",
        metavar="NUMBER",
        parser=parsers.whole_number("--at-once", 1, MOST_AT_ONCE),
        help="Requests at any moment; speeds differ by the number of busy slots.",
    ),
]


def command(
    model: ModelArgument,
    requests: RequestsOption = REQUESTS,
    tokens: TokensOption = TOKENS,
    at_once: AtOnceOption = 1,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> int:
    """Time a model with its speculation policy and without."""
    declared = require_manifest(manifest)
    name = model_id(model, declared)
    effort = Effort(requests, tokens, at_once)
    try:
        trial = run_to_its_end(run_trial(declared, name, effort, os.environ, note))
    except (ProxyError, NothingTimed, StateDirError) as error:
        raise CommandFailed(NOT_SO, str(error)) from error
    if as_json:
        print_json(trial_json(name, effort, trial))
    else:
        print_trial(trial_json(name, effort, trial))
    return OK


def trial_json(name: str, effort: Effort, trial: Trial) -> dict[str, Any]:
    """What was asked and measured; values of a policy that does not draft are null."""
    return {
        "model": name,
        "requests": effort.requests,
        "tokens": effort.tokens,
        "at_once": effort.at_once,
        "speculation": speculation_json(trial.policy.instance),
        "workloads": [
            _workload_json(workload, plain, trial.policy.timings.get(workload))
            for workload, plain in trial.plain.timings.items()
        ],
    }


def _workload_json(workload: str, plain: Timing, policy: Timing | None) -> dict[str, Any]:
    missing = None if policy is None else _no_speedup(plain, policy)
    return {
        "workload": workload,
        "answers": plain.answers,
        "baseline_tokens_per_s": round(plain.tokens_per_s, 3),
        "tokens_per_s": None if policy is None else round(policy.tokens_per_s, 3),
        "speedup": None if policy is None or missing else _speedup(plain, policy),
        "no_speedup": missing,
        "baseline_first_token_s": rounded(plain.first_token_s, SHOWN_DIGITS),
        "first_token_s": None if policy is None else rounded(policy.first_token_s, SHOWN_DIGITS),
        "acceptance": None if policy is None else rounded(policy.acceptance, SHOWN_DIGITS),
    }


def _speedup(plain: Timing, policy: Timing) -> float:
    return round(policy.tokens_per_s / plain.tokens_per_s, 3)


def _no_speedup(plain: Timing, policy: Timing) -> str | None:
    """Why the quotient of two speeds would say nothing of drafting; None where it does."""
    for one in (plain, policy):
        if one.tokens < max(LEAST_TOKENS, LEAST_ANSWER * one.answers):
            return TOO_FEW
    return NOTHING_DRAFTED if policy.acceptance is None else None


def print_trial(document: dict[str, Any]) -> None:
    """One table, after what drafts and why."""
    told = document["speculation"]
    resolved = f"resolved {told['resolved']}, running {told['running']}"
    say(f"{document['model']}: speculation asked {told['asked'] or 'by engine_args'}, {resolved}", "bold")
    for reason in (*([told["reason"]] if told["reason"] else ()), *told["notes"]):
        print_reason(reason, owner=reason["severity"], indent="  ")
    print_table(COLUMNS, [tuple(_row(row)) for row in document["workloads"]])
    if all(row["tokens_per_s"] is None for row in document["workloads"]):
        say("Nothing drafts with this policy, so there is nothing to compare.")


def _row(row: dict[str, Any]) -> Iterator[str | None]:
    yield row["workload"]
    yield str(row["answers"])
    yield f"{row['baseline_tokens_per_s']:.1f}"
    yield _shown(row["tokens_per_s"], "{:.1f}")
    yield row["no_speedup"] or _shown(row["speedup"], "{:.2f}x")
    yield _shown(row["baseline_first_token_s"], "{:.3f} s")
    yield _shown(row["first_token_s"], "{:.3f} s")
    yield _shown(row["acceptance"], "{:.0%}")


def _shown(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value)
