// core/result.h and the probability records of core/sampling.h
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/enum_names.h"
#include "binding/texts.h"

namespace nb = nanobind;

namespace paddock {
namespace {

void bind_records(nb::module_& module) {
    nb::class_<TokenProbability> candidate(module, "TokenProbability",
                                           "A candidate with its probability in [0, 1].");
    candidate.def_ro("token", &TokenProbability::token).def_ro("probability", &TokenProbability::probability);
    bytes_property(candidate, "piece", &TokenProbability::piece);

    nb::class_<TokenRecord>(module, "TokenRecord",
                            "The chosen token and its alternatives, sorted descending.")
        .def_ro("chosen", &TokenRecord::chosen)
        .def_ro("top", &TokenRecord::top);
}

void bind_counters(nb::module_& module) {
    nb::class_<Timings>(module, "Timings", "Milliseconds and rates.")
        .def_ro("cache_n", &Timings::cache_n)
        .def_ro("prompt_n", &Timings::prompt_n)
        .def_ro("prompt_ms", &Timings::prompt_ms)
        .def_ro("prompt_per_token_ms", &Timings::prompt_per_token_ms)
        .def_ro("prompt_per_second", &Timings::prompt_per_second)
        .def_ro("predicted_n", &Timings::predicted_n)
        .def_ro("predicted_ms", &Timings::predicted_ms)
        .def_ro("predicted_per_token_ms", &Timings::predicted_per_token_ms)
        .def_ro("predicted_per_second", &Timings::predicted_per_second);

    nb::class_<PromptProgress>(module, "PromptProgress", "How far a prompt is, in tokens.")
        .def_ro("total", &PromptProgress::total)
        .def_ro("cache", &PromptProgress::cache)
        .def_ro("processed", &PromptProgress::processed)
        .def_ro("time_ms", &PromptProgress::time_ms);

    nb::class_<LoraView> lora(module, "LoraView", "An adapter of the server's list.");
    lora.def_ro("id", &LoraView::id)
        .def_ro("scale", &LoraView::scale)
        .def_ro("invocation_tokens", &LoraView::invocation_tokens)
        .def_prop_ro("path", [](const LoraView& self) { return as_file_name(self.path); });
    text_property(lora, "task_name", &LoraView::task_name);
    text_property(lora, "prompt_prefix", &LoraView::prompt_prefix);
    text_property(lora, "invocation_text", &LoraView::invocation_text);
}

}  // namespace

void bind_result(nb::module_& module) {
    bind_records(module);
    bind_counters(module);
    nb::class_<Result> result(module, "Result", "What a task gives back; read only.");
    bytes_property(result, "text", &Result::text);
    bytes_property(result, "stopping_word", &Result::stopping_word);
    text_property(result, "stop_detail", &Result::stop_detail);
    result.def_ro("id", &Result::id)
        .def_ro("kind", &Result::kind)
        .def_ro("index", &Result::index)
        .def_ro("id_slot", &Result::id_slot)
        .def_ro("tokens", &Result::tokens)
        .def_ro("records", &Result::records)
        .def_ro("n_decoded", &Result::n_decoded)
        .def_ro("n_prompt_tokens", &Result::n_prompt_tokens)
        .def_ro("n_prompt_cached", &Result::n_prompt_cached)
        .def_ro("has_timings", &Result::has_timings)
        .def_ro("timings", &Result::timings)
        .def_ro("is_progress", &Result::is_progress)
        .def_ro("progress", &Result::progress)
        .def_ro("truncated", &Result::truncated)
        .def_ro("has_new_line", &Result::has_new_line)
        .def_ro("stop", &Result::stop)
        .def_ro("n_tokens_cached", &Result::n_tokens_cached)
        .def_ro("n_reasoning_tokens", &Result::n_reasoning_tokens)
        .def_ro("speculation", &Result::speculation)
        .def_ro("loop_guard", &Result::loop_guard)
        .def_ro("embeddings", &Result::embeddings)
        .def_ro("score", &Result::score)
        .def_ro("n_slot_tokens", &Result::n_slot_tokens)
        .def_ro("n_bytes", &Result::n_bytes)
        .def_ro("action_ms", &Result::action_ms)
        .def_ro("loras", &Result::loras)
        .def_ro("success", &Result::success)
        .def_ro("error", &Result::error)
        .def_ro("n_ctx", &Result::n_ctx)
        .def_prop_ro("is_last", &Result::is_last);
}

}  // namespace paddock
