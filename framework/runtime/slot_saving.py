"""Save the slots of an instance that is about to end on purpose (07 §11.5, §11.7, §11.8).

Called by runtime.ending, after the drain and before the process is told to end. Giving up costs the next
start some reading; it never fails a stop, and a request that waits is held up by one slot at most.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.planning.slot_saving.decision import (
    SaveFacts,
    estimate_bytes,
    given_up,
    over_limit,
    why_not_saved,
)
from framework.planning.slot_saving.fingerprint import Loaded, files_of, fingerprint, may_go_on
from framework.planning.slot_saving.record import SavedSlot, encode, slot_file_name
from framework.runtime import slot_files
from framework.runtime.instance import Instance
from framework.runtime.launch import Running, Site
from framework.runtime.shielded import finish
from framework.runtime.slot_answers import slot_action
from framework.runtime.voice import Voice
from framework.values.reason import Reason
from framework.values.request import LiveSettings

log = logging.getLogger(__name__)

# A request that was just cut off frees its slot within 25 ms (15 §5), unless it is in the middle of a batch.
BUSY_LOOKS, BUSY_PAUSE_S = 10, 0.1
RUN_BYTES = 4
Held = dict[int, int | None]
"""Tokens in each slot that is not busy, by its number; None where the engine does not say."""


@dataclass
class Patience:
    """How long others may be held up. `waits`: a request waits for what ends; `until_s`: the end of time."""

    waits: Callable[[], bool]
    until_s: float | None = None
    has_saved: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is no time for another slot: a request waits for one at most (07 §11.10)."""
        return self.limited_s(1.0) <= 0 or (self.has_saved and self.waits())

    def limited_s(self, timeout_s: float) -> float:
        """Of a time-out, what there is time for."""
        return timeout_s if self.until_s is None else min(timeout_s, self.until_s - time.monotonic())


def is_continued(old: Instance, new: Instance) -> bool:
    """Whether a replacement may be able to go on with the slots of what it replaces."""
    return old.plan is not None and new.plan is not None and may_go_on(old.plan, new.plan)


async def save(site: Site, instance: Instance, voice: Voice, patience: Patience) -> None:
    """Save what there is in the slots for the next instance. Cancelled, it leaves nothing behind."""
    loaded, running, live = instance.loaded, instance.running, instance.request.live
    if loaded is None or running is None or not running.child.alive or not live.slot_save_max_bytes:
        return
    saving = _Saving(site, running, loaded, live, voice, patience)
    try:
        await saving.run()
    except OSError as error:
        log.warning("%s: its slots are not saved in %s: %s", instance.name, site.slot_folder, error)


@dataclass
class _Saving:
    """One run over the slots of a process."""

    site: Site
    running: Running
    loaded: Loaded
    live: LiveSettings
    voice: Voice
    patience: Patience
    saved: list[SavedSlot] = field(default_factory=list)
    bytes: int = 0
    fault: str = ""
    """What went wrong last, as a clause."""

    async def run(self) -> None:
        held = await self._held()
        if not any(tokens != 0 for tokens in held.values()):
            return
        began_s, is_kept = time.monotonic(), False
        try:
            why = await asyncio.to_thread(self._why_not, held)
            if why is None:
                await self._save(held)
                why = self._outcome()
            if why is not None:
                self.voice.slots_discarded(len(self.saved), self.bytes, why)
            elif self.saved:
                data = encode(self.loaded.fingerprint, self.saved)
                await asyncio.to_thread(slot_files.keep_record, self.site.slot_folder, data)
                is_kept = True
                tokens = sum(slot.n_saved for slot in self.saved)
                self.voice.slots_saved(len(self.saved), tokens, self.bytes, time.monotonic() - began_s)
        finally:
            if not is_kept:
                await finish(asyncio.to_thread(slot_files.clear, self.site.slot_folder))

    async def _held(self) -> Held:
        """What there is to save. Of an engine that does not show its slots every one may hold something."""
        count, slots = self.loaded.result.slots, None
        for look in range(BUSY_LOOKS):
            await asyncio.sleep(BUSY_PAUSE_S if look else 0)
            slots = await self.site.client.slots(self.running.port, self.running.key)
            if slots is None:
                return dict.fromkeys(range(count))
            if not any(slot.get("is_processing") is True for slot in slots):
                break
        idle = [slot for slot in slots or () if slot.get("is_processing") is not True]
        held = {number: self._tokens(slot) for slot in idle if type(number := slot.get("id")) is int}
        return {number: tokens for number, tokens in held.items() if 0 <= number < count}

    def _tokens(self, slot: Mapping[str, Any]) -> int | None:
        """Tokens in a slot that may be saved. One without a request since the start holds what it was given.

        What a request with adapters of its own has left is of no use to others, and engines would not notice.
        """
        if "id_task" not in slot:
            return self.loaded.restored.get(slot["id"], 0)
        params = slot.get("params")
        if isinstance(params, Mapping) and params.get("lora"):
            return 0
        tokens = slot.get("n_prompt_tokens")
        return tokens if type(tokens) is int else None

    def _why_not(self, held: Held) -> Reason | None:
        """07 §11.5, with the files and the disk as they are now. What lay in the folder goes."""
        folder, loaded = self.site.slot_folder, self.loaded
        slot_files.clear(folder)
        if (fault := slot_files.open_folder(folder)) is not None:
            return fault
        files, beside = files_of(loaded.plan)
        seen = slot_files.stamps((*files, *beside))
        known = [tokens for tokens in held.values() if tokens is not None]
        return why_not_saved(
            SaveFacts(
                loaded=loaded.fingerprint,
                now=fingerprint(folder, loaded.plan, loaded.result, seen),
                estimate_bytes=estimate_bytes(
                    loaded.plan.fit, sum(known) if len(known) == len(held) else None
                ),
                limit_bytes=self.live.slot_save_max_bytes,
                free_bytes=slot_files.free_bytes(folder),
            )
        )

    async def _save(self, held: Held) -> None:
        """The longest first: where only one can be saved, it is the one that costs most to read again."""
        folder, run = self.site.slot_folder, secrets.token_hex(RUN_BYTES)
        for number in sorted(held, key=lambda number: -(held[number] or 0)):
            if held[number] == 0:
                continue
            if self.patience.is_over:
                self.fault = "there is no time for it"
                return
            name = slot_file_name(run, number)
            timeout_s = self.patience.limited_s(self.live.slot_save_timeout_s)
            answer = await slot_action(self.site.client, self.running, number, "save", name, timeout_s)
            size = await asyncio.to_thread(slot_files.seal, folder / name) if answer.tokens else None
            if size is None:
                self.fault = answer.said or "the engine wrote no file"
                await asyncio.to_thread(slot_files.discard, folder / name)
                if answer.is_lost:
                    return
                continue
            self.patience.has_saved = True
            self.saved.append(SavedSlot(number, name, answer.tokens))
            self.bytes += size
            if self.bytes > self.live.slot_save_max_bytes:
                return

    def _outcome(self) -> Reason | None:
        """Why nothing is kept of what was done; None where something is, or there was nothing."""
        if self.bytes > self.live.slot_save_max_bytes:
            return over_limit(self.bytes, self.live.slot_save_max_bytes)
        return None if self.saved or not self.fault else given_up(self.fault)
