"""Variables in `environment` that never reach an engine, or only where nothing else says the same (06 §7.3).

They would change a setting behind the plan, so the process is started without them. That is said where they
are written, with what to write instead. Called by `load.py`; the names are those that `engines` takes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framework.manifest.engine_args import normalised
from framework.manifest.findings import Findings
from framework.manifest.schema_engines import EngineTable
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.spec_modes import MODES_WITH_DRAFTER, canonical_mode
from framework.manifest.tables import Entry, Tables
from framework.values.drafter_variables import DRAFTER_VARIABLES

Declaring = Entry[EngineTable] | Entry[DefaultsTable]
ENGINE_PREFIX = "LLAMA_ARG_"
ENGINE_KEY = "LLAMA_API_KEY"
ENGINE_KEY_FILE = "LLAMA_ARG_API_KEY_FILE"
INSTANCE_MARK = "PADDOCK_INSTANCE"
SPEC_TYPE_VARIABLE = "LLAMA_ARG_SPEC_TYPE"
THREADS_VARIABLE = "LLAMA_ARG_THREADS"
# 06 §7.3 step 1: in manual mode the line says where every layer goes; these would say it again, differently.
PLACEMENT_VARIABLES = tuple(
    f"{ENGINE_PREFIX}{name}"
    for name in ("CPU_MOE", "N_CPU_MOE", "N_GPU_LAYERS", "TENSOR_SPLIT", "FIT", "FIT_TARGET", "FIT_CTX")
)
SPEC_FLAGS = frozenset({"--spec-type", "--spec-default"})

NEVER = {
    SPEC_TYPE_VARIABLE: "use mode of a [speculation.NAME] table, or --spec-type in engine_args",
    THREADS_VARIABLE: "use threads",
    INSTANCE_MARK: "the processes of models are known by it",
}
"""Variable to what to do instead, or why it is so."""

_BY_MODE = "the mode of its policy loads no drafter; use draft in a [speculation.NAME] table"
_BY_KEY = "every process gets a random key unless engines.NAME.api_key is false"
_BY_PLACEMENT = 'with placement.mode = "manual" the keys of placement say it'


def check_environment(tables: Tables, models: Mapping[str, ModelTable], findings: Findings) -> None:
    """Note each variable that has no effect; `models` have what they inherit. Values are never shown."""
    written: list[Declaring] = [*tables.engines.values(), *tables.asking()]
    for entry in written:
        _note(entry, NEVER, findings)
    for name, merged in models.items():
        unused = dict(_unused(merged, tables))
        _note(tables.models[name], unused, findings)
        if tables.defaults is not None:
            kept = {variable: why for variable, why in unused.items() if variable in merged.environment}
            _note(tables.defaults, kept, findings)
        if merged.engine in tables.engines:
            _note(tables.engines[merged.engine], unused, findings)


def _note(entry: Declaring, unused: Mapping[str, str], findings: Findings) -> None:
    for variable in entry.table.environment:
        if variable in unused:
            place = entry.place.child("environment", variable).key
            findings.add(
                "variable_unused",
                place,
                f"{place.name} never reaches the engine; {unused[variable]}",
                found=variable,
                severity="warning",
            )


def _unused(merged: ModelTable, tables: Tables) -> Iterator[tuple[str, str]]:
    """Variables that one model has no use for, with what to do instead."""
    if merged.placement.mode == "manual":
        yield from ((variable, _BY_PLACEMENT) for variable in PLACEMENT_VARIABLES)
    engine = tables.engines.get(merged.engine)
    if engine is None or engine.table.api_key:
        yield from ((variable, _BY_KEY) for variable in (ENGINE_KEY, ENGINE_KEY_FILE))
    if not _takes_drafter(merged, tables):
        yield from ((variable, _BY_MODE) for variable in DRAFTER_VARIABLES)


def _takes_drafter(merged: ModelTable, tables: Tables) -> bool:
    """Whether a drafter may come to be used; what `auto` comes to is not known here."""
    if SPEC_FLAGS.intersection(normalised(merged.engine_args)):
        return True
    policy = None if merged.speculation is None else tables.speculation.get(merged.speculation)
    return policy is None or canonical_mode(policy.table.mode) in MODES_WITH_DRAFTER
