"""Plans of models that are not downloaded: made with files of holes, shown as the download would have them.

Called by runtime.planner when a hub source is to be measured before any gigabyte moves (13 §3).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from framework.models.companions import choose_projector
from framework.models.file_names import label
from framework.models.hub.facts import RemoteModel, ResolvedSource, source_text
from framework.models.hub.places import SNAPSHOTS, canonical_repo, repo_folder
from framework.models.variants import complete_sets
from framework.planning.memory import Variant
from framework.values.plan import FitPlan, LaunchPlan, Section
from framework.values.reason import Reason
from framework.values.units_text import size

# The largest ones that help; a repository may have thirty.
MOST_VARIANTS = 3


def stand_in_source(remote: RemoteModel) -> ResolvedSource:
    """The files of holes as if they were the model's."""
    return ResolvedSource(
        remote.source, remote.stand_ins[0], remote.stand_ins, remote.label, remote.listing.revision
    )


def smaller_variants(remote: RemoteModel) -> tuple[Variant, ...]:
    """Other quantisations of the repository that are smaller, the largest first."""
    sizes = {file.path: file.size_bytes for file in remote.listing.files}
    found: dict[str, int] = {}
    for files in complete_sets(remote.listing.paths):
        known = [size_bytes for path in files.paths if (size_bytes := sizes[path]) is not None]
        if len(known) == len(files.paths):  # half a size would promise what is not so
            found[label(files.main) or files.main] = sum(known)
    smaller = [Variant(name, total) for name, total in found.items() if 0 < total < remote.total_bytes]
    return tuple(sorted(smaller, key=lambda variant: -variant.bytes))


def projector_bytes(remote: RemoteModel) -> int:
    """Size of the projector that would be fetched with the model; 0 where the repository has none."""
    name = choose_projector(remote.listing.paths)
    found = remote.listing.file(name) if name is not None else None
    return (found.size_bytes or 0) if found is not None else 0


def as_downloaded(plan: LaunchPlan, remote: RemoteModel, cache: Path) -> LaunchPlan:
    """The plan with the paths that the files will have, and the reason that they are not there yet."""
    repo = repo_folder(canonical_repo(cache, remote.listing.repo))
    main = cache / repo / SNAPSHOTS / remote.listing.revision / remote.paths[0]
    stand_in = str(remote.stand_ins[0])

    def named(section: Section) -> Section:
        tokens = (str(main) if token == stand_in else token for token in section.tokens)
        return replace(section, tokens=tuple(tokens))

    return replace(
        plan,
        main_gguf=main,
        file_bytes=remote.total_bytes,
        sections=tuple(map(named, plan.sections)),
        fit=_few_variants(plan.fit),
        reasons=(_headers_only(plan, remote), *plan.reasons),
    )


def _few_variants(fit: FitPlan) -> FitPlan:
    variants = [remedy for remedy in fit.remedies if remedy.kind == "variant"][:MOST_VARIANTS]
    kept = tuple(remedy for remedy in fit.remedies if remedy.kind != "variant" or remedy in variants)
    return replace(fit, remedies=kept)


def _headers_only(plan: LaunchPlan, remote: RemoteModel) -> Reason:
    fetched = f"but {size(remote.fetched_bytes)} of headers" if remote.fetched_bytes else "now"
    known = "" if remote.fetched_bytes else "; its headers were known"
    return Reason(
        "headers_only",
        f"Nothing of {source_text(remote.source)} was downloaded {fetched}{known};"
        f" the model has {size(remote.total_bytes)}.",
        f"`paddock pull {plan.request.id}` downloads it.",
        evidence={"fetched_bytes": remote.fetched_bytes, "total_bytes": remote.total_bytes},
    )
