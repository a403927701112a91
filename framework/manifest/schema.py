"""The whole manifest as one class, for JSON Schema, the reference and the list of known keys.

Reading does not go through it: `tables.py` checks each table on its own, so that one bad table does not hide
what the others say.
"""

from __future__ import annotations

from framework.manifest.schema_engines import EngineTable, PoolTable, SpeculationTable
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.schema_server import AccessTable, ServerTable
from framework.manifest.table import Table, option, sub_table
from framework.manifest.value_types import ModelName, Name, Text

NAMED_TABLES: dict[str, type[Table]] = {
    "access": AccessTable,
    "engines": EngineTable,
    "pools": PoolTable,
    "speculation": SpeculationTable,
    "models": ModelTable,
}
"""Tables of tables: `[models.NAME]`. These may stand in included files."""

SINGLE_TABLES: dict[str, type[Table]] = {"server": ServerTable, "defaults": DefaultsTable}


class ManifestTable(Table):
    """What `paddock up` serves, and how."""

    include: list[Text] = option([], effect="live")
    """Further files whose tables are added: paths or patterns, relative to this file. They may hold models,
    engines, pools, policies and access keys."""
    server: ServerTable = sub_table(ServerTable)
    """The endpoint and the dashboard."""
    access: dict[Name, AccessTable] = option({})
    """Keys that clients present, by name."""
    engines: dict[Name, EngineTable] = option({})
    """Programs that serve models, by name."""
    pools: dict[Name, PoolTable] = option({})
    """Sets of devices, by name."""
    speculation: dict[Name, SpeculationTable] = option({})
    """Policies for drafting, by name."""
    defaults: DefaultsTable = sub_table(DefaultsTable)
    """What every model inherits."""
    models: dict[ModelName, ModelTable] = option({})
    """Models, by the name that clients use."""
