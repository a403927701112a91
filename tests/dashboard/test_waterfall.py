"""What the memory waterfall of a plan says and draws."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.dashboard.pages.model import sections_of
from framework.dashboard.pages.waterfall import MemorySection, Waterfall, memory_section
from framework.values.instance import State
from framework.values.plan import FitPlan
from tests.dashboard import fits, pool_samples, samples
from tests.dashboard.html import Element, parse
from tests.dashboard.renders import OPERATOR, model_page, planned, pools_page, templates
from tests.dashboard.samples import GIB, MIB


def section(fit: FitPlan | None) -> MemorySection:
    return memory_section("m", fit)


def device(fit: FitPlan, name: str) -> Waterfall:
    return next(waterfall for waterfall in section(fit).waterfalls if waterfall.device == name)


def drawn(fit: FitPlan) -> Element:
    """The section of a page as a tree."""
    page = templates().page("model.html", model_page(planned("m", fit)), OPERATOR)
    return next(parse(page).all("section", class_="memory"))


@pytest.mark.parametrize("fit", [fits.ON_HOST, fits.ON_TWO, fits.ON_THREE], ids=["host", "two", "three"])
def test_each_step_begins_where_the_last_one_ended(fit: FitPlan) -> None:
    for waterfall in section(fit).waterfalls:
        ends = [0.0]
        for step in waterfall.steps:
            assert step.start_share == pytest.approx(ends[-1], abs=0.003)
            ends.append(step.start_share + step.width_share)
        assert all(0 <= end <= 1.004 for end in ends)


def test_devices_stand_in_the_order_of_the_plan() -> None:
    assert [one.device for one in section(fits.ON_TWO).waterfalls] == ["CUDA0", "CUDA1", "CPU"]
    assert [one.device for one in section(fits.ON_HOST).waterfalls] == ["CPU"]


def test_what_does_not_count_comes_last_and_says_why() -> None:
    steps = device(fits.ON_HOST, "CPU").steps
    assert [step.label for step in steps] == [
        "KV cache",
        "compute buffers",
        "output buffer",
        "weights",
        "prompt cache",
    ]
    assert [step.soft for step in steps] == [False, False, False, True, True]
    assert "can drop" in steps[3].note
    assert "bit by bit" in steps[4].note


def test_a_giant_leaves_the_picture_so_that_the_rest_is_seen() -> None:
    waterfall = device(fits.ON_HOST, "CPU")
    assert waterfall.steps[0].width_share > 0.5
    assert [step.cut for step in waterfall.steps] == [False, False, False, False, True]
    assert waterfall.marks[0].cut


def test_a_budget_within_reach_is_on_the_axis() -> None:
    (mark,) = device(fits.ON_TWO, "CUDA1").marks
    assert (mark.cut, mark.size_bytes) == (False, 11 * GIB)
    assert 0.9 < mark.share < 1


def test_over_budget_is_what_lies_beyond_the_mark() -> None:
    waterfall = device(fits.ON_TWO, "CUDA0")
    weights, cache, compute, runtime = waterfall.steps
    assert weights.over_width_share == 0
    assert cache.over_start_share == pytest.approx(waterfall.marks[0].share)
    assert 0 < cache.over_width_share < cache.width_share
    assert compute.over_width_share == pytest.approx(compute.width_share)
    assert runtime.over_width_share > 0
    assert (waterfall.tone, waterfall.verdict.startswith("Over budget by 1.9 GiB")) == ("bad", True)


def test_pages_of_files_are_never_over_budget() -> None:
    fit = fits.fit_of(
        fits.line("CPU", "weights", 9 * GIB, mapped=True), fits.line("CPU", "kv", MIB), CPU=2 * MIB
    )
    waterfall = device(fit, "CPU")
    assert [step.over_width_share for step in waterfall.steps] == [0, 0]
    assert (waterfall.needed_bytes, waterfall.tone) == (MIB, "ok")


def test_without_a_budget_nothing_is_claimed() -> None:
    waterfall = device(fits.fit_of(fits.line("CUDA0", "kv", MIB), fits=None), "CUDA0")
    assert (waterfall.marks, waterfall.tone) == ((), "idle")
    assert "not known" in waterfall.verdict


@pytest.mark.parametrize("size", [0, 1, 2**62], ids=["nothing", "a byte", "absurd"])
def test_any_size_can_be_drawn(size: int) -> None:
    (step,) = device(fits.fit_of(fits.line("CPU", "kv", size), CPU=size), "CPU").steps
    assert 0 < step.width_share <= 1


def test_the_settings_of_the_numbers_are_named() -> None:
    assert section(fits.ON_TWO).settings == (
        "8,192 tokens, 4 slots, KV cache f16 / q8_0, 48 layers on GPUs, experts of 4 layers in host memory"
    )


def test_a_plan_without_memory_says_who_decides() -> None:
    assert "fit step decides" in section(FitPlan()).absent


def test_a_model_that_never_started_says_that_nothing_is_planned() -> None:
    (one,) = sections_of(samples.model(state=State.STOPPED))
    assert one.memory.absent.startswith("Not planned yet")


def test_the_table_has_the_numbers_of_the_picture() -> None:
    tree = drawn(fits.ON_TWO)
    table = next(tree.all("table"))
    assert [row.text for row in table.one("tbody").all("tr")] == [
        "weights 9 GiB measured",
        "KV cache 3 GiB computed over budget",
        "compute buffers 560 MiB measured over budget",
        "driver and runtime 320 MiB assumed over budget",
    ]
    assert [row.text for row in table.one("tfoot").all("tr")] == [
        "needed from the start 13 GiB",
        "everything together 13 GiB",
        "budget 11 GiB",
    ]


def test_the_picture_says_in_words_what_it_shows() -> None:
    tree = drawn(fits.ON_TWO)
    picture = next(tree.all("svg", role="img"))
    title, description = picture.one("title"), picture.one("desc")
    assert picture.attributes["aria-labelledby"].split() == [
        title.attributes["id"],
        description.attributes["id"],
    ]
    assert title.text == "Memory on CUDA0"
    assert "KV cache 3 GiB" in description.text
    assert "Over budget" in description.text


def test_how_a_number_is_known_is_a_pattern_and_a_word() -> None:
    tree = drawn(fits.ON_TWO)
    fills = [rect.attributes["fill"] for rect in next(tree.all("svg", role="img")).all("rect", class_="step")]
    assert fills == ["url(#p-measured)", "url(#p-computed)", "url(#p-measured)", "url(#p-assumed)"]


def test_every_pattern_that_is_used_is_defined() -> None:
    pages = [
        parse(templates().page("model.html", model_page(planned("m", fits.ON_TWO)), OPERATOR)),
        parse(
            templates().page(
                "pools.html", pools_page(pool_samples.gpu_pool(), pool_samples.host_pool()), OPERATOR
            )
        ),
    ]
    fills = {e.attributes.get("fill", "") for tree in pages for e in tree.all()}
    fills = {fill for fill in fills if fill.startswith("url(#")}
    defined = {f"url(#{pattern.attributes['id']})" for pattern in pages[0].all("pattern")}
    assert fills == defined


def test_remedies_are_ranked_and_say_whether_they_suffice() -> None:
    items = list(drawn(fits.ON_TWO).one("ol").all("li"))
    assert items[0].text.startswith("then it fits Store the cache as q8_0")
    assert items[1].text.startswith("not enough alone Use 1 slot")
    assert list(drawn(fits.ON_HOST).all("ol")) == []


def test_a_hostile_device_name_stays_text() -> None:
    fit = fits.fit_of(fits.line("<script>alert(1)</script>", "kv", MIB))
    tree = drawn(fit)
    assert list(tree.all("script")) == []
    assert next(tree.all("bdi")).text == "<script>alert(1)</script>"


def test_what_the_memory_plan_grants_stands_in_the_comparison() -> None:
    view = planned("m", replace(fits.ON_TWO, cache_types=("q8_0", "q8_0")))
    (one,) = sections_of(view)
    granted = {row.label: row.granted for row in one.compare.rows}
    assert granted["Context"] == "8,192 tokens"
    assert granted["KV cache (K / V)"] == "q8_0 / q8_0"
    assert granted["Offload"] == "48 layers on the GPU, experts of 4 layers in RAM"
    assert granted["Devices"] == "CUDA0, CUDA1, CPU"
