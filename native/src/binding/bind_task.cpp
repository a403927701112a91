// core/task.h and the parameters of core/sampling.h
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/enum_names.h"
#include "binding/texts.h"

namespace nb = nanobind;

namespace paddock {
namespace {

void bind_constraints(nb::module_& module) {
    nb::class_<GrammarTrigger>(module, "GrammarTrigger", "What starts a lazy grammar.")
        .def(
            "__init__",
            [](GrammarTrigger* self, GrammarTrigger::Kind kind, std::string value, Token token) {
                new (self) GrammarTrigger{kind, std::move(value), token};
            },
            nb::arg("kind") = "word", nb::arg("value") = "", nb::arg("token") = -1)
        .def_rw("kind", &GrammarTrigger::kind)
        .def_rw("value", &GrammarTrigger::value)
        .def_rw("token", &GrammarTrigger::token);

    nb::class_<ReasoningParams>(module, "ReasoningParams", "Budget of reasoning; inactive without end tags.")
        .def(nb::init<>())
        .def_rw("start_tag", &ReasoningParams::start_tag)
        .def_rw("end_tags", &ReasoningParams::end_tags)
        .def_rw("budget_tokens", &ReasoningParams::budget_tokens)
        .def_rw("message", &ReasoningParams::message)
        .def_rw("starts_open", &ReasoningParams::starts_open)
        .def_rw("controllable", &ReasoningParams::controllable);
}

void bind_sampling(nb::module_& module) {
    nb::class_<SamplingParams>(module, "SamplingParams",
                               "How tokens are chosen; the defaults are llama-server's.")
        .def(nb::init<>())
        .def_rw("seed", &SamplingParams::seed)
        .def_rw("samplers", &SamplingParams::samplers)
        .def_rw("temperature", &SamplingParams::temperature)
        .def_rw("dynatemp_range", &SamplingParams::dynatemp_range)
        .def_rw("dynatemp_exponent", &SamplingParams::dynatemp_exponent)
        .def_rw("top_k", &SamplingParams::top_k)
        .def_rw("top_p", &SamplingParams::top_p)
        .def_rw("min_p", &SamplingParams::min_p)
        .def_rw("top_n_sigma", &SamplingParams::top_n_sigma)
        .def_rw("typical_p", &SamplingParams::typical_p)
        .def_rw("xtc_probability", &SamplingParams::xtc_probability)
        .def_rw("xtc_threshold", &SamplingParams::xtc_threshold)
        .def_rw("repeat_last_n", &SamplingParams::repeat_last_n)
        .def_rw("repeat_penalty", &SamplingParams::repeat_penalty)
        .def_rw("presence_penalty", &SamplingParams::presence_penalty)
        .def_rw("frequency_penalty", &SamplingParams::frequency_penalty)
        .def_rw("dry_multiplier", &SamplingParams::dry_multiplier)
        .def_rw("dry_base", &SamplingParams::dry_base)
        .def_rw("dry_allowed_length", &SamplingParams::dry_allowed_length)
        .def_rw("dry_penalty_last_n", &SamplingParams::dry_penalty_last_n)
        .def_rw("dry_sequence_breakers", &SamplingParams::dry_sequence_breakers)
        .def_rw("mirostat", &SamplingParams::mirostat)
        .def_rw("mirostat_tau", &SamplingParams::mirostat_tau)
        .def_rw("mirostat_eta", &SamplingParams::mirostat_eta)
        .def_rw("adaptive_target", &SamplingParams::adaptive_target)
        .def_rw("adaptive_decay", &SamplingParams::adaptive_decay)
        .def_rw("min_keep", &SamplingParams::min_keep)
        .def_rw("ignore_eos", &SamplingParams::ignore_eos)
        .def_rw("logit_bias", &SamplingParams::logit_bias)
        .def_rw("grammar", &SamplingParams::grammar)
        .def_rw("grammar_lazy", &SamplingParams::grammar_lazy)
        .def_rw("grammar_triggers", &SamplingParams::grammar_triggers)
        .def_rw("preserved_tokens", &SamplingParams::preserved_tokens)
        .def_rw("reasoning", &SamplingParams::reasoning);
}

void bind_generation(nb::module_& module) {
    nb::class_<GenerationParams>(module, "GenerationParams", "Everything that a generating request may set.")
        .def(nb::init<>())
        .def_rw("sampling", &GenerationParams::sampling)
        .def_rw("n_predict", &GenerationParams::n_predict)
        .def_rw("n_keep", &GenerationParams::n_keep)
        .def_rw("n_discard", &GenerationParams::n_discard)
        .def_rw("n_indent", &GenerationParams::n_indent)
        .def_rw("n_cache_reuse", &GenerationParams::n_cache_reuse)
        .def_rw("t_max_predict_ms", &GenerationParams::t_max_predict_ms)
        .def_rw("cache_prompt", &GenerationParams::cache_prompt)
        .def_rw("stream", &GenerationParams::stream)
        .def_rw("return_tokens", &GenerationParams::return_tokens)
        .def_rw("return_progress", &GenerationParams::return_progress)
        .def_rw("timings_per_token", &GenerationParams::timings_per_token)
        .def_rw("post_sampling_probs", &GenerationParams::post_sampling_probs)
        .def_rw("n_probs", &GenerationParams::n_probs)
        .def_rw("stop", &GenerationParams::stop)
        .def_rw("lora", &GenerationParams::lora)
        .def_rw("speculation", &GenerationParams::speculation)
        .def_rw("loop_guard", &GenerationParams::loop_guard);
}

}  // namespace

void bind_task(nb::module_& module) {
    bind_constraints(module);
    bind_sampling(module);
    bind_generation(module);
    nb::class_<Task> task(module, "Task", "One unit of work; copied when it is submitted.");
    task.def(nb::init<>())
        .def_rw("kind", &Task::kind)
        .def_rw("index", &Task::index)
        .def_rw("tokens", &Task::tokens)
        .def_rw("params", &Task::params)
        .def_rw("id_slot", &Task::id_slot)
        .def_rw("completion_id", &Task::completion_id)
        .def_rw("children", &Task::children)
        .def_rw("parent", &Task::parent)
        .def_rw("embd_normalize", &Task::embd_normalize)
        .def_rw("file_name", &Task::file_name)
        .def_rw("lora_scales", &Task::lora_scales);
    file_name_property(task, "file_path", &Task::file_path);
}

}  // namespace paddock
