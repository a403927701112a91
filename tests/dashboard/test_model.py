"""What the page of a model says: sections, reasons, the way it falls into parts."""

from __future__ import annotations

from dataclasses import replace

from framework.dashboard.pages.model import body_fragment, gone_fragment, head_of, sections_of
from framework.dashboard.updates import Sent, Whole
from framework.values.instance import ModelView, State
from tests.dashboard import fits, samples
from tests.dashboard.renders import OPERATOR, model_page, templates


def sent_for(before: ModelView, after: ModelView) -> list[str]:
    """Templates of what is sent when one becomes the other."""
    sent = Sent()
    sent.remember((body_fragment(model_page(before).body),))
    found = sent.changes((body_fragment(model_page(after).body),))
    return [update.fragment.template for update in found if isinstance(update, Whole)]


def with_instance(view: ModelView, **fields: object) -> ModelView:
    return replace(view, instances=(replace(view.instances[0], **fields),))  # type: ignore[arg-type]


def test_a_model_without_instance_shows_what_was_asked() -> None:
    (section,) = sections_of(samples.model(state=State.STOPPED))
    assert section.process is None
    assert section.compare.rows[0].asked == "4,096 tokens"
    assert (section.slots.cells, section.slots.absent) == ((), "")


def test_asked_is_what_the_manifest_says_now() -> None:
    running = samples.instance(samples.request(n_ctx=8192))
    (section,) = sections_of(samples.model(asked=samples.request(n_ctx=4096), instances=(running,)))
    assert section.compare.rows[0].asked == "4,096 tokens"


def test_memory_of_a_stopped_model_is_that_of_its_last_start() -> None:
    asked = samples.request()
    over = samples.instance(asked, State.STOPPED, plan=samples.plan(asked, fit=fits.ON_HOST))
    view = samples.model(asked=asked, state=State.STOPPED, instances=(over,))
    (section,) = sections_of(view)
    assert section.memory.of_last_start
    html = templates().page("model.html", model_page(view), OPERATOR)
    assert "of its last start, for 8,192 tokens" in html


def test_a_stopped_model_explains_nothing_of_its_last_start() -> None:
    asked = samples.request()
    result = samples.result(degradations=(samples.CONTEXT_CUT,))
    over = samples.instance(asked, State.STOPPED, plan=samples.plan(asked), result=result)
    (section,) = sections_of(samples.model(asked=asked, state=State.STOPPED, instances=(over,)))
    assert section.reasons.reasons == ()


def test_serving_and_replacement_are_told_apart() -> None:
    asked = samples.request()
    new = samples.instance(asked, State.STARTING, generation=2)
    view = samples.model(replacing=True, instances=(samples.instance(asked), new))
    assert [section.heading for section in sections_of(view)] == [
        "Replica 0, serving",
        "Replica 0, replacement",
    ]


def test_replicas_stand_in_order() -> None:
    asked = samples.request(live={"replicas": 2})
    view = samples.model(asked=asked, instances=(samples.instance(asked, replica=1), samples.instance(asked)))
    assert [section.heading for section in sections_of(view)] == ["Replica 0", "Replica 1"]


def test_every_reason_is_shown_once_and_the_worst_first() -> None:
    asked = samples.request()
    doubled = samples.result(degradations=(samples.CONTEXT_CUT, samples.CONTEXT_CUT))
    running = samples.instance(asked, last_error=samples.NO_MEMORY, result=doubled)
    (section,) = sections_of(samples.model(instances=(running,)))
    codes = [reason.code for reason in section.reasons.reasons]
    assert codes == ["out_of_memory", "context_lowered", "ngram_knobs_missing"]


def test_the_end_of_the_output_of_a_failed_start_is_shown() -> None:
    (section,) = sections_of(samples.failed())
    assert "ggml_cuda: out of memory" in section.reasons.detail


def test_the_head_says_how_it_loads_and_unloads() -> None:
    head = head_of(samples.model(asked=samples.request(live={"idle_after_s": 600.0})))
    assert (head.loads, head.unloads) == ("at the first request", "after 10 min without requests")


def test_a_model_that_is_loaded_at_start_is_not_unloaded_for_idleness() -> None:
    assert (
        head_of(samples.model(asked=samples.request(live={"load": "at-start"}))).unloads == "only by Unload"
    )


def test_unload_modes_are_offered_where_something_runs() -> None:
    assert model_page(samples.model()).body.buttons.modes[0][0] == "drain"
    assert model_page(samples.loading()).body.buttons.modes == ()


def test_a_moving_slot_is_sent_alone() -> None:
    before = samples.model()
    slots = before.instances[0].slots
    after = with_instance(before, slots=(replace(slots[0], generated=1032), *slots[1:]))
    assert sent_for(before, after) == ["_slot.html"]


def test_the_age_of_a_fresh_sample_is_not_news() -> None:
    before = samples.model()
    aged = tuple(replace(slot, stale_s=1.9) for slot in before.instances[0].slots)
    assert sent_for(before, with_instance(before, slots=aged)) == []


def test_a_load_that_goes_on_sends_the_head_alone() -> None:
    before = samples.loading()
    progress = before.instances[0].progress
    assert progress is not None
    after = with_instance(before, progress=replace(progress, loaded_bytes=progress.loaded_bytes * 2))
    assert sent_for(before, after) == ["_model_head.html"]


def test_a_new_instance_sends_the_instances() -> None:
    before = samples.model()
    after = samples.model(instances=(samples.instance(before.request, generation=2),))
    assert sent_for(before, after) == ["_instances.html"]


def test_a_model_that_comes_back_is_sent_whole() -> None:
    sent = Sent()
    page = (body_fragment(model_page(samples.model()).body),)
    sent.remember(page)
    sent.changes((gone_fragment("smollm2"),))
    found = sent.changes(page)
    assert [update.fragment.template for update in found if isinstance(update, Whole)] == ["_model_body.html"]
