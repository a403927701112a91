"""Answers of the questions that need facts: plan, diff, engines, devices, doctor.

The server and the local commands compute them with the same functions; `shapes` turns them into JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from framework.values.action import ModelAction
from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, EngineRef
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
class DiffAnswer:
    """What applying a text would do. With an error among `problems` there are no actions."""

    actions: tuple[ModelAction, ...] = ()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    """`[server]` fields whose new value waits for the next `up`."""


@dataclass(frozen=True)
class EngineAnswer:
    """One `[engines.NAME]` table and what was found for it. `reasons` say why something is missing."""

    ref: EngineRef
    binary: EngineBinary | None = None
    capabilities: Capabilities | None = None
    reasons: tuple[Reason, ...] = ()


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
