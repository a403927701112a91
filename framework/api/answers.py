"""Answers of the questions that need facts: plan, diff, engines, devices, doctor.

The server and the local commands compute them with the same functions; `shapes` turns them into JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from framework.manifest.edit import Change
from framework.values.action import ModelAction
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, EngineRef
from framework.values.manifest_edit import Way
from framework.values.plan import LaunchPlan
from framework.values.problem import Problem
from framework.values.reason import Failure, Reason
from framework.values.request import ModelRequest


@dataclass(frozen=True)
class RefusedInstance:
    """A replica that planning refused; nothing is granted."""

    request: ModelRequest
    replica: int
    failure: Failure


@dataclass(frozen=True)
class PlanAnswer:
    """A whole plan. `reasons` are those that belong to no instance, such as an engine that was not found."""

    path: Path
    sha256: str
    devices: tuple[Device, ...] = ()
    instances: tuple[LaunchPlan | RefusedInstance, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class DeviceOutlook:
    """What our processes hold of a device by their plans, before and after an apply."""

    device: str
    pool: str | None
    total_bytes: int
    before_bytes: int
    after_bytes: int


@dataclass(frozen=True)
class ModelOutlook:
    """A model whose launch an apply changes. `before` is what it runs with, or would start with now."""

    model: str
    before: LaunchPlan | RefusedInstance | None
    """None for one that was not declared."""
    after: LaunchPlan | RefusedInstance
    runs: bool
    """Whether the apply starts it; else `after` holds from its next start on."""
    ran: bool
    """Whether `before` has a process."""


@dataclass(frozen=True)
class Outlook:
    """Memory before and after an apply. `unplanned` counts changed models beyond those that are planned."""

    devices: tuple[DeviceOutlook, ...] = ()
    models: tuple[ModelOutlook, ...] = ()
    unplanned: int = 0


@dataclass(frozen=True)
class DiffAnswer:
    """What applying a text would do. With an error among `problems` there are no actions."""

    actions: tuple[ModelAction, ...] = ()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    """`[server]` fields whose new value waits for the next `up`."""
    memory: Outlook | None = None
    """None where there are errors, and where nobody asked."""


@dataclass(frozen=True)
class EngineAnswer:
    """One `[engines.NAME]` table and what was found for it. `reasons` say why something is missing."""

    ref: EngineRef
    binary: EngineBinary | None = None
    capabilities: Capabilities | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class WayAnswer:
    """An edit that may help against a reason, and what the planner says that it gives."""

    code: str
    """Of the reason."""
    way: Way
    file: str
    changes: tuple[Change, ...]
    """In the manifest, by whole paths."""
    before: LaunchPlan | RefusedInstance | None
    after: LaunchPlan | RefusedInstance | None
    """None where the manifest would have errors, which `problems` tell."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class DevicesAnswer:
    """All devices that the engines see, host memory included, with the pool each belongs to.

    `sampled_at` is when they were listed, None while nobody has listed them.
    """

    devices: tuple[Device, ...] = ()
    reasons: tuple[Reason, ...] = ()
    sampled_at: datetime | None = None


@dataclass(frozen=True)
class DoctorCheck:
    """One thing that was looked at. A check that is ok may still have a reason, as a hint."""

    name: str
    ok: bool
    reason: Reason | None = None
