"""Give the slots that were saved to the next instance, before requests reach it (07 §11.9).

Called by runtime.starting. Everything that was saved is gone afterwards, whatever came of it, and nothing
that goes wrong here fails a start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from framework.engines.command_line import SLOT_SAVING
from framework.engines.rewrites import without
from framework.planning.slot_saving.fingerprint import Loaded, difference, files_of, fingerprint
from framework.planning.slot_saving.grant import saves_slots
from framework.planning.slot_saving.record import Record
from framework.runtime import slot_files
from framework.runtime.launch import Running, Site
from framework.runtime.shielded import finish
from framework.runtime.slot_answers import slot_action
from framework.runtime.voice import Voice
from framework.values.plan import LaunchPlan, LaunchResult
from framework.values.reason import Reason

CHANGED = "Nothing: the next stop saves them anew."


async def with_folder(site: Site, plan: LaunchPlan) -> tuple[LaunchPlan, Reason | None]:
    """The plan with the folder of its slots made; without them, and why, where that cannot be (07 §11.2)."""
    if not saves_slots(plan):
        return plan, None
    fault = await asyncio.to_thread(slot_files.open_folder, site.slot_folder)
    if fault is None:
        return plan, None
    return replace(plan, sections=without(plan.sections, SLOT_SAVING)), fault


async def restore(
    site: Site, running: Running, plan: LaunchPlan, result: LaunchResult, voice: Voice, *, timeout_s: float
) -> Loaded | None:
    """Give a ready process what was saved for it; what its slots belong to, or None where none will be saved.

    `plan` is as the last attempt left it; `timeout_s` is for each slot.
    """
    if not saves_slots(plan):
        if plan.request.slot_save:
            await _give_up(site.slot_folder, voice)
        return None
    folder = site.slot_folder
    files, beside = files_of(plan)
    seen = await asyncio.to_thread(slot_files.stamps, (*files, *beside))
    loaded = Loaded(plan, result, fingerprint(folder, plan, result, seen))
    record = await asyncio.to_thread(slot_files.take_record, folder)
    try:
        if record is None:
            return loaded
        sizes = await asyncio.to_thread(_sizes, folder, record)
        if changed := difference(record.belongs_to, loaded.fingerprint):
            voice.slots_discarded(len(record.slots), sum(sizes.values()), _changed(changed))
            return loaded
        restoring = _Restoring(site, running, record, sizes, timeout_s)
        return replace(loaded, restored=await restoring.run(voice))
    finally:
        await finish(asyncio.to_thread(slot_files.clear, folder))


async def _give_up(folder: Path, voice: Voice) -> None:
    """The model saves no slots as it runs now: nothing to come could use what was saved."""
    record = await asyncio.to_thread(slot_files.take_record, folder)
    if record is not None:
        sizes = await asyncio.to_thread(_sizes, folder, record)
        reason = _changed("what decides whether slots are saved")
        voice.slots_discarded(len(record.slots), sum(sizes.values()), reason)
    await asyncio.to_thread(slot_files.clear, folder)


@dataclass(frozen=True)
class _Restoring:
    """One run over the slots of a record."""

    site: Site
    running: Running
    record: Record
    sizes: Mapping[str, int]
    timeout_s: float

    async def run(self, voice: Voice) -> dict[int, int]:
        """Slot by slot; one that is refused does not keep the others from theirs. Tokens by slot."""
        began_s = time.monotonic()
        tokens: dict[int, int] = {}
        size_bytes, fault = 0, "their files are gone"
        for slot in self.record.slots:
            if slot.filename not in self.sizes:
                continue
            answer = await slot_action(
                self.site.client, self.running, slot.id, "restore", slot.filename, self.timeout_s
            )
            if answer.tokens:
                tokens[slot.id] = answer.tokens
                size_bytes += self.sizes[slot.filename]
            fault = answer.said
            if answer.is_lost:
                break
        of, seconds = len(self.record.slots), time.monotonic() - began_s
        if tokens:
            voice.slots_restored(len(tokens), of, sum(tokens.values()), size_bytes, seconds)
        else:
            voice.slots_discarded(of, sum(self.sizes.values()), _refused(fault))
        return tokens


def _sizes(folder: Path, record: Record) -> dict[str, int]:
    """Bytes of the files that are there and ours."""
    found = ((slot.filename, slot_files.size_of(folder / slot.filename)) for slot in record.slots)
    return {name: size for name, size in found if size is not None}


def _changed(what: str) -> Reason:
    return Reason(
        "slot_state_stale",
        f"The saved prompt caches are not used: since they were saved, {what} has changed.",
        CHANGED,
        "info",
        {"changed": what},
    )


def _refused(said: str) -> Reason:
    return Reason(
        "slot_state_refused",
        f"The saved prompt caches are not used: {said}.",
        "Look at `paddock logs`; conversations are read again, and the next stop saves them anew.",
        "warning",
        {"said": said},
    )
