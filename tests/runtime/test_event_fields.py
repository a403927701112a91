"""Every event of a life carries the fields that docs/api.md names, so that the log can say why (07 §14.1)."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from framework.values.instance import State
from framework.values.request import RestartPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import ALONE, FleetRig, changed, request_for
from tests.support.waiting import eventually

API = Path(__file__).resolve().parents[2] / "docs" / "api.md"
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (.*`.*) \|$", re.MULTILINE)
# Of a download the fields differ from its begin to its end; the rest is not about one instance.
LATER = {"download", "manifest_loaded", "manifest_rejected", "applied", "orphan", "manager"}


def documented() -> dict[str, set[str]]:
    """Kind to the names of its fields, where a row speaks of one kind alone."""
    text = API.read_text(encoding="utf-8").partition("| Kind | Fields of `data` |")[2].partition("\n\n")[0]
    rows = [(re.findall(r"`(\w+)`", kinds), fields) for kinds, fields in ROW.findall(text)]
    return {
        kinds[0]: set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields)))
        for kinds, fields in rows
        if len(kinds) == 1
    }


async def test_a_life_with_crashes_says_what_happened_in_all_its_fields(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    policy = RestartPolicy(max_crashes=1, window_s=600.0, stable_after_s=300.0)
    request = request_for(fake_engine(), tiny_gguf, pool=ALONE, live={"restart": policy})
    rig.declare(request)
    first = await rig.until("m", State.READY)
    lease = await rig.fleet.acquire("m")
    rig.declare(changed(request, n_ctx=2048))
    await rig.until("m", State.DRAINING)
    lease.release()
    await eventually(lambda: "replaced" in rig.kinds("m"), what="the replacement")
    for _ in range(2):
        view = await rig.until("m", State.READY)
        assert view.pid is not None
        os.kill(view.pid, signal.SIGSEGV)
        await eventually(lambda pid=view.pid: rig.instance("m").pid != pid, what="the crash to be seen")
    await rig.until("m", State.FAILED)
    rig.fleet.reload("m", by="somebody")
    await rig.until("m", State.READY)
    rig.fleet.unload("m", by="somebody")
    await rig.until("m", State.STOPPED)

    told = {event.kind: event for event in rig.events.recent(model="m", limit=1000)}
    seen = documented()
    met = {"state", "planned", "attempt", "ready", "exited", "respawn", "crash_loop", "drain", "replaced"}
    assert met <= told.keys()
    for kind, event in told.items():
        if kind in LATER or kind == "command":
            continue
        about = {"instance", "epoch"}
        assert event.data.keys() == about | seen.get(kind, set()), kind
        assert str(event.data["instance"]).startswith("m.0@"), kind
    assert told["command"].data == {"command": "unload (drain)", "by": "somebody"}
    crash = told["exited"].data
    assert (crash["exit_code"], crash["hard"], crash["planned"]) == (-signal.SIGSEGV, True, False)
    assert told["crash_loop"].data["count"] == 2
    assert told["drain"].data["instance"] == first.instance


async def test_a_start_that_fails_names_its_exit_and_its_log(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(exit_code=3, exit_after_s=0.0)
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.FAILED)
    data = rig.event("start_failed").data
    assert data["class"] == "start_failed"
    assert data["exit_code"] == 3
    assert Path(data["log"]).is_file()


async def test_a_refusal_has_its_class(rig: FleetRig, fake_engine: MakeFake, tmp_path: Path) -> None:
    rig.declare(request_for(fake_engine(), tmp_path / "missing.gguf"))
    await rig.until("m", State.FAILED)
    data = rig.event("refused").data
    assert (data["class"], data["instance"]) == ("model_missing", "m.0@1")
