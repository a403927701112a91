// core/snapshot.h
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/enum_names.h"
#include "binding/texts.h"

namespace nb = nanobind;

namespace paddock {
namespace {

void bind_slot_view(nb::module_& module) {
    nb::class_<SlotView> view(module, "SlotView", "A slot as it was at the end of a cycle.");
    view.def_ro("id", &SlotView::id)
        .def_ro("n_ctx", &SlotView::n_ctx)
        .def_ro("state", &SlotView::state)
        .def_ro("idle_ms", &SlotView::idle_ms)
        .def_ro("n_cached_tokens", &SlotView::n_cached_tokens)
        .def_ro("n_checkpoints", &SlotView::n_checkpoints)
        .def_ro("was_used", &SlotView::was_used)
        .def_ro("id_task", &SlotView::id_task)
        .def_ro("n_prompt_tokens", &SlotView::n_prompt_tokens)
        .def_ro("n_prompt_processed", &SlotView::n_prompt_processed)
        .def_ro("n_prompt_cached", &SlotView::n_prompt_cached)
        .def_ro("has_next_token", &SlotView::has_next_token)
        .def_ro("has_new_line", &SlotView::has_new_line)
        .def_ro("n_remaining", &SlotView::n_remaining)
        .def_ro("n_decoded", &SlotView::n_decoded)
        .def_ro("timings", &SlotView::timings)
        .def_ro("prompt_tokens", &SlotView::prompt_tokens)
        .def_ro("speculation", &SlotView::speculation)
        .def_ro("loop_guard", &SlotView::loop_guard)
        // A copy: the core's is shared with a running task and never changes.
        .def_prop_ro(
            "params",
            [](const SlotView& self) -> nb::object {
                return self.params == nullptr ? nb::none() : nb::cast(*self.params, nb::rv_policy::copy);
            },
            nb::sig("def params(self) -> GenerationParams | None"));
    bytes_property(view, "generated", &SlotView::generated);
}

void bind_totals(nb::module_& module) {
    nb::class_<Totals>(module, "Totals", "Counts since the start; times in microseconds.")
        .def_ro("prompt_tokens", &Totals::prompt_tokens)
        .def_ro("prompt_tokens_cached", &Totals::prompt_tokens_cached)
        .def_ro("prompt_us", &Totals::prompt_us)
        .def_ro("predicted_tokens", &Totals::predicted_tokens)
        .def_ro("predicted_us", &Totals::predicted_us)
        .def_ro("n_decode", &Totals::n_decode)
        .def_ro("decode_failures", &Totals::decode_failures)
        .def_ro("n_tokens_max", &Totals::n_tokens_max)
        .def_ro("busy_slots", &Totals::busy_slots)
        .def_ro("refills", &Totals::refills)
        .def_ro("checkpoints_created", &Totals::checkpoints_created)
        .def_ro("checkpoints_restored", &Totals::checkpoints_restored)
        .def_ro("checkpoints_evicted", &Totals::checkpoints_evicted)
        .def_ro("prompt_rate", &Totals::prompt_rate)
        .def_ro("predicted_rate", &Totals::predicted_rate)
        .def_ro("speculation", &Totals::speculation);
}

}  // namespace

void bind_snapshot(nb::module_& module) {
    bind_slot_view(module);
    bind_totals(module);
    nb::class_<Snapshot>(module, "Snapshot",
                         "What the engine was doing at the end of its last cycle; never changes.")
        .def_ro("state", &Snapshot::state)
        .def_ro("slots", &Snapshot::slots)
        .def_ro("totals", &Snapshot::totals)
        .def_ro("n_processing", &Snapshot::n_processing)
        .def_ro("n_deferred", &Snapshot::n_deferred)
        .def_ro("prompt_cache_bytes", &Snapshot::prompt_cache_bytes)
        .def_ro("prompt_cache_entries", &Snapshot::prompt_cache_entries);
}

}  // namespace paddock
