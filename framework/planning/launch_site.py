"""A launch without a place, and the devices that it may go to. Pure values, made by runtime.planner."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from framework.planning.launch import LaunchFacts
from framework.planning.launch_memory import ModelMemory
from framework.planning.memory.budget import budgets
from framework.planning.memory.settings import Hardware
from framework.planning.placement.room import room_for
from framework.planning.placement.search import Search
from framework.planning.placement.servers import taken_names
from framework.planning.placement.slices import usable_together
from framework.values.device import Device
from framework.values.plan import LaunchPlan
from framework.values.pool import Resident
from framework.values.reason import Reason

UNKNOWN_DEVICES = "devices_unknown"


@dataclass(frozen=True)
class Launch:
    """What is to be started, and what was found out about it."""

    plan: LaunchPlan
    facts: LaunchFacts
    model: ModelMemory
    fault: str | None = None
    """Why its memory cannot be planned, where that is known before."""
    searches: dict[Hashable, Search] = field(default_factory=dict, compare=False, repr=False)
    """Searches of before, by what they were about: a decision asks for many places on the same devices."""

    @property
    def file_bytes(self) -> int:
        """Files of the model and of what is loaded beside it."""
        return self.plan.file_bytes + self.model.projector_bytes + self.model.drafter_bytes


@dataclass(frozen=True)
class Site:
    """Devices as they are now, and who is on them."""

    devices: tuple[Device, ...]
    residents: tuple[Resident, ...] = ()
    unlisted: tuple[Reason, ...] = ()
    """Why something is not among the devices."""
    ceilings: Mapping[str, int] = field(default_factory=dict)
    """The most bytes that the launch may need, by device."""

    @property
    def is_known(self) -> bool:
        """Whether an engine could say what there is."""
        return not any(reason.code == UNKNOWN_DEVICES for reason in self.unlisted)

    def hardware(self, gpus: Sequence[Device], launch: Launch) -> Hardware:
        """What of it the launch may use."""
        return room_for(gpus, self.devices, launch.plan.request.pool, self.residents, self.ceilings)

    def together(self, gpus: Sequence[Device], launch: Launch) -> tuple[Device, ...]:
        """Those of them that one process can use at a time, the roomiest ones."""
        return usable_together(gpus, budgets(self.hardware(gpus, launch)))

    def are_all_taken(self, gpus: Sequence[Device]) -> bool:
        """Whether there are GPUs, and each belongs to a server that serves somebody else."""
        taken = taken_names(self.devices, self.residents)
        return bool(gpus) and all(gpu.name in taken for gpu in gpus)

    def untaken(self, gpus: Sequence[Device]) -> tuple[Device, ...]:
        """Those that nobody else has to himself; all of them where somebody has every one."""
        taken = taken_names(self.devices, self.residents)
        return tuple(gpu for gpu in gpus if gpu.name not in taken) or tuple(gpus)
