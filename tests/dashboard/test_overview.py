"""What the overview says of models, devices and the whole."""

from __future__ import annotations

import pytest

from framework.api.answers import DevicesAnswer
from framework.dashboard.pages.device_list import device_list_of
from framework.dashboard.pages.overview import overview_fragments, row_of, summary_of, table_of
from framework.dashboard.updates import Sent, Whole
from framework.dashboard.views import recent_events
from framework.values.device import Device
from framework.values.instance import QueueView, State
from framework.values.reason import Reason
from tests.dashboard import samples
from tests.dashboard.fake_system import make_system
from tests.dashboard.renders import manifest, overview

WARNING = Reason("context_reduced", "The context is shorter.", "Ask for less.", "warning")


def test_a_ready_model_shows_what_runs() -> None:
    row = row_of(samples.degraded(), "/")
    assert (row.context, row.slots, row.speculation) == ("8,192 tokens", "4 slots", "ngram-mod")


def test_a_model_that_never_ran_shows_what_was_asked() -> None:
    row = row_of(samples.model(state=State.STOPPED, asked=samples.request(n_ctx=0, slots=2)), "/")
    assert (row.context, row.slots, row.speculation, row.since) == ("automatic", "2 slots", "auto", None)


def test_a_loading_model_shows_how_far_it_is_and_who_waits() -> None:
    row = row_of(samples.loading(), "/")
    assert row.progress is not None
    assert (row.progress.fraction, row.progress.eta_s) == (0.368, 42.0)
    assert (row.waiting, row.wait_eta_s) == (3, 42.0)


def test_a_failed_model_shows_why_and_what_to_do() -> None:
    assert row_of(samples.failed(), "/").error == samples.NO_MEMORY


def test_an_old_error_of_a_model_that_serves_again_is_no_error() -> None:
    asked = samples.request()
    view = samples.model(instances=(samples.instance(asked, last_error=samples.NO_MEMORY),))
    assert row_of(view, "/").error is None


def test_a_model_that_runs_with_less_than_asked_says_how_many_reasons_there_are() -> None:
    assert row_of(samples.degraded(), "/").notes == 1


def test_requests_and_speed_are_summed_over_replicas() -> None:
    asked = samples.request(live={"replicas": 2})
    both = (samples.instance(asked), samples.instance(asked, replica=1, generation_tokens_per_s=8.73))
    row = row_of(samples.model(asked=asked, instances=both), "/")
    assert row.in_flight == 4
    assert row.tokens_per_s == pytest.approx(50.0)
    assert row.flags == ("2 of 2 replicas ready",)


def test_a_speed_that_no_engine_gives_is_not_guessed() -> None:
    asked = samples.request()
    view = samples.model(instances=(samples.instance(asked, generation_tokens_per_s=None),))
    assert row_of(view, "/").tokens_per_s is None


@pytest.mark.parametrize(
    ("fields", "flag"),
    [
        ({"replacing": True}, "a replacement is being started"),
        ({"removed": True}, "no longer in the manifest"),
        ({"state": State.STOPPED, "stopped_by_command": True}, "unloaded by command; stays so until Load"),
    ],
)
def test_what_the_state_does_not_say_is_a_flag(fields: dict[str, object], flag: str) -> None:
    assert row_of(samples.model(**fields), "/").flags == (flag,)  # type: ignore[arg-type]


def test_counts_cover_all_models_whatever_is_shown() -> None:
    stopped, retrying = samples.model("b", State.STOPPED), samples.model("c", State.BACKOFF)
    views = (samples.model(), samples.loading(), samples.failed(), stopped, retrying)
    summary = summary_of(views, "failed", manifest())
    assert [(group.key, group.models, group.chosen) for group in summary.groups] == [
        ("", 5, False),
        ("ready", 1, False),
        ("loading", 1, False),
        ("waiting", 1, False),
        ("failed", 1, True),
        ("stopped", 1, False),
    ]
    assert (summary.in_flight, summary.waiting, summary.tokens_per_s) == (2, 3, 41.27)


def test_a_row_of_a_stopped_model_shows_what_is_asked_now() -> None:
    asked = samples.request(n_ctx=4096, slots=2)
    plan, result = samples.plan(asked, slots=8), samples.result(context=8192)
    over = samples.instance(asked, State.STOPPED, plan=plan, result=result)
    row = row_of(samples.model(asked=asked, state=State.STOPPED, instances=(over,)), "/")
    assert (row.context, row.slots, row.speculation) == ("4,096 tokens", "2 slots", "auto")


def test_a_filter_shows_only_its_models_and_buttons_lead_back_to_it() -> None:
    table = table_of((samples.model(), samples.failed()), "failed", "serve.toml")
    assert [(row.name, row.back) for row in table.rows] == [("big", "/?state=failed")]


def test_models_stand_in_declared_order() -> None:
    views = [samples.model(name, State.STOPPED) for name in ("zebra", "ant", "mule")]
    assert [row.name for row in table_of(views, None, "").rows] == ["zebra", "ant", "mule"]


def test_one_model_that_moves_is_sent_alone() -> None:
    views = [samples.model(f"m{n}", State.STOPPED) for n in range(300)]
    sent = Sent()
    sent.remember(overview_fragments(overview(*views)))
    views[7] = samples.model("m7", State.STOPPED, queue=QueueView(1, 16, None, None))
    found = sent.changes(overview_fragments(overview(*views)))
    names = [update.fragment.template for update in found if isinstance(update, Whole)]
    assert names == ["_summary.html", "_model_row.html"]


def test_a_new_model_sends_the_table() -> None:
    sent = Sent()
    sent.remember(overview_fragments(overview(samples.model("a"))))
    found = sent.changes(overview_fragments(overview(samples.model("a"), samples.model("b"))))
    assert "_model_table.html" in [u.fragment.template for u in found if isinstance(u, Whole)]


def test_a_device_shows_how_much_of_it_is_taken() -> None:
    devices = device_list_of(DevicesAnswer((Device("CUDA0", "gpu", 1000, 250),), sampled_at=samples.NOW))
    assert [(row.name, row.kind) for row in devices.rows] == [("CUDA0", "GPU")]
    assert [part.width_share for part in devices.rows[0].bar.segments] == [0.75]


def test_a_device_of_unknown_size_is_not_full() -> None:
    devices = device_list_of(DevicesAnswer((Device("CUDA0", "gpu", 0, 0),), sampled_at=samples.NOW))
    assert devices.rows[0].bar.segments == ()


def test_before_the_first_answer_no_device_is_claimed() -> None:
    assert device_list_of(DevicesAnswer()).listed_at is None


async def test_the_last_events_are_without_the_steps_of_starts_that_went_well() -> None:
    system = make_system(samples.model())
    events = system.services.events
    events.record("ready", "up", model="smollm2")
    events.record("planned", "less than asked", model="smollm2", reason=WARNING)
    for _ in range(20):
        events.record("state", "starting -> ready", model="smollm2")
    assert [row.kind for row in recent_events(system.services, None).rows] == ["planned", "ready"]
    assert {row.kind for row in recent_events(system.services, "smollm2").rows} == {"state"}
