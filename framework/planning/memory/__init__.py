"""How much memory a launch will take, on which device, and how we know (03). Pure: no files, no clock.

`plan_memory` is the plan, `largest_context` the longest context that fits, `remedies` what to change when it
does not. `shape_of` and `table_of` turn what was read of a model's files into what they take.
"""

from framework.planning.memory.context_fit import ContextFit
from framework.planning.memory.drafter import Drafter
from framework.planning.memory.fit import Extras, largest_context, plan_memory
from framework.planning.memory.remedies import Variant, remedies
from framework.planning.memory.settings import (
    CacheSettings,
    DraftPlan,
    GpuBudget,
    Hardware,
    HostSettings,
    Offload,
)
from framework.planning.memory.shape import ModelShape, shape_of
from framework.planning.memory.tensor_table import TensorTable, table_of

__all__ = [
    "CacheSettings",
    "ContextFit",
    "DraftPlan",
    "Drafter",
    "Extras",
    "GpuBudget",
    "Hardware",
    "HostSettings",
    "ModelShape",
    "Offload",
    "TensorTable",
    "Variant",
    "largest_context",
    "plan_memory",
    "remedies",
    "shape_of",
    "table_of",
]
