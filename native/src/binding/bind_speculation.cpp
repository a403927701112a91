// core/speculation/speculation_params.h and core/speculation/report.h
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/texts.h"
#include "core/speculation/report.h"
#include "core/speculation/speculation_params.h"

namespace nb = nanobind;

namespace paddock {
namespace {

void bind_drafter_wishes(nb::module_& module) {
    nb::class_<DraftModelParams> model(module, "DraftModelParams",
                                       "The separate drafter; what isn't set is as the target's.");
    model.def(nb::init<>());
    file_name_property(model, "path", &DraftModelParams::path);
    model.def_rw("n_gpu_layers", &DraftModelParams::n_gpu_layers)
        .def_rw("devices", &DraftModelParams::devices)
        .def_rw("cache_type_k", &DraftModelParams::cache_type_k)
        .def_rw("cache_type_v", &DraftModelParams::cache_type_v)
        .def_rw("n_threads", &DraftModelParams::n_threads)
        .def_rw("n_threads_batch", &DraftModelParams::n_threads_batch);

    nb::class_<NgramLengths>(module, "NgramLengths",
                             "Tokens of the pattern, tokens drafted, and hits that an entry needs.")
        .def(nb::init<>())
        .def_rw("n", &NgramLengths::n)
        .def_rw("m", &NgramLengths::m)
        .def_rw("min_hits", &NgramLengths::min_hits);

    nb::class_<NgramModLengths>(module, "NgramModLengths",
                                "Tokens of the pattern, least and most tokens drafted.")
        .def(nb::init<>())
        .def_rw("match", &NgramModLengths::match)
        .def_rw("min", &NgramModLengths::min)
        .def_rw("max", &NgramModLengths::max);
}

void bind_depth(nb::module_& module) {
    nb::class_<DepthParams>(module, "DepthParams", "How the depth of drafts is ruled.")
        .def(nb::init<>())
        .def_rw("adaptive", &DepthParams::adaptive)
        .def_rw("controller", &DepthParams::controller)
        .def_rw("fringe_min", &DepthParams::fringe_min)
        .def_rw("fringe_max", &DepthParams::fringe_max)
        .def_rw("fringe_window", &DepthParams::fringe_window)
        .def_rw("min_reach", &DepthParams::min_reach)
        .def_rw("off_dwell", &DepthParams::off_dwell)
        .def_rw("probe_interval", &DepthParams::probe_interval)
        .def_rw("probe_fraction", &DepthParams::probe_fraction)
        .def_rw("explore_interval", &DepthParams::explore_interval)
        .def_rw("profit_min", &DepthParams::profit_min)
        // `raise` is a keyword of Python.
        .def_rw("raise_", &DepthParams::raise)
        .def_rw("lower", &DepthParams::lower)
        .def_rw("ewma", &DepthParams::ewma)
        .def_rw("min_samples", &DepthParams::min_samples)
        .def_rw("warmup", &DepthParams::warmup)
        .def_rw("baseline_interval", &DepthParams::baseline_interval);
}

void bind_wishes(nb::module_& module) {
    nb::class_<SpeculationParams> type(module, "SpeculationParams",
                                       "What the command line says of drafting.");
    type.def(nb::init<>())
        .def_rw("types", &SpeculationParams::types)
        .def_rw("model", &SpeculationParams::model)
        .def_rw("n_max", &SpeculationParams::n_max)
        .def_rw("n_min", &SpeculationParams::n_min)
        .def_rw("p_min", &SpeculationParams::p_min)
        .def_rw("branch_budget", &SpeculationParams::branch_budget)
        .def_rw("topk", &SpeculationParams::topk)
        .def_rw("branch_seqs", &SpeculationParams::branch_seqs)
        .def_rw("p_split", &SpeculationParams::p_split)
        .def_rw("draft_temperature", &SpeculationParams::draft_temperature)
        .def_rw("verify", &SpeculationParams::verify)
        .def_rw("reduced", &SpeculationParams::reduced)
        .def_rw("reduced_drafters", &SpeculationParams::reduced_drafters)
        .def_rw("grammar_blocks", &SpeculationParams::grammar_blocks)
        .def_rw("rs_snapshots", &SpeculationParams::rs_snapshots)
        .def_rw("strict", &SpeculationParams::strict)
        .def_rw("simple", &SpeculationParams::simple)
        .def_rw("map_k", &SpeculationParams::map_k)
        .def_rw("map_k4v", &SpeculationParams::map_k4v)
        .def_rw("mod", &SpeculationParams::mod)
        .def_rw("depth", &SpeculationParams::depth);
    file_name_property(type, "lookup_static", &SpeculationParams::lookup_static);
    file_name_property(type, "lookup_dynamic", &SpeculationParams::lookup_dynamic);

    nb::class_<SpeculationRequest>(module, "SpeculationRequest",
                                   "What one request changes; None: as the server's.")
        .def(nb::init<>())
        .def_rw("type", &SpeculationRequest::type, nb::arg().none())
        .def_rw("n_max", &SpeculationRequest::n_max, nb::arg().none())
        .def_rw("n_min", &SpeculationRequest::n_min, nb::arg().none())
        .def_rw("p_min", &SpeculationRequest::p_min, nb::arg().none())
        .def_rw("adaptive", &SpeculationRequest::adaptive, nb::arg().none())
        .def_rw("controller", &SpeculationRequest::controller, nb::arg().none());

    nb::class_<LoopGuardParams>(module, "LoopGuardParams",
                                "When output that repeats itself is stopped; counts of tokens.")
        .def(nb::init<>())
        .def_rw("mode", &LoopGuardParams::mode)
        .def_rw("min_reasoning_tokens", &LoopGuardParams::min_reasoning_tokens)
        .def_rw("window_tokens", &LoopGuardParams::window_tokens)
        .def_rw("max_period", &LoopGuardParams::max_period)
        .def_rw("min_repeated_coverage", &LoopGuardParams::min_repeated_coverage)
        .def_rw("check_interval", &LoopGuardParams::check_interval)
        .def_rw("interventions_max", &LoopGuardParams::interventions_max);
}

void bind_counts(nb::module_& module) {
    nb::class_<VerifyCounts>(module, "VerifyCounts", "Tokens by how they were judged.")
        .def_ro("exact", &VerifyCounts::exact)
        .def_ro("prob_accept", &VerifyCounts::prob_accept)
        .def_ro("reject", &VerifyCounts::reject)
        .def_ro("no_prob", &VerifyCounts::no_prob)
        .def_ro("bonus", &VerifyCounts::bonus);

    nb::class_<RollbackCounts>(module, "RollbackCounts", "Drafts by how memory was taken back.")
        .def_ro("none", &RollbackCounts::none)
        .def_ro("trim", &RollbackCounts::trim)
        .def_ro("snapshot", &RollbackCounts::snapshot)
        .def_ro("redecode", &RollbackCounts::redecode)
        .def_ro("refill", &RollbackCounts::refill);
}

void bind_reports(nb::module_& module) {
    nb::class_<ReducedReport>(
        module, "ReducedReport",
        "How the latest draft was judged: by the k best tokens of its rows, or why not.")
        .def_ro("path", &ReducedReport::path)
        .def_ro("reason", &ReducedReport::reason)
        .def_ro("view_reason", &ReducedReport::view_reason)
        .def_ro("k", &ReducedReport::k);

    nb::class_<SpeculationReport>(module, "SpeculationReport", "What drafting did for one request.")
        .def_ro("types", &SpeculationReport::types)
        .def_ro("active_type", &SpeculationReport::active_type)
        .def_ro("fallback_reason", &SpeculationReport::fallback_reason)
        .def_ro("idle_reason", &SpeculationReport::idle_reason)
        .def_ro("adaptive", &SpeculationReport::adaptive)
        .def_ro("controller", &SpeculationReport::controller)
        .def_ro("depth", &SpeculationReport::depth)
        .def_ro("depth_base", &SpeculationReport::depth_base)
        .def_ro("depth_state", &SpeculationReport::depth_state)
        .def_ro("fringe", &SpeculationReport::fringe)
        .def_ro("score", &SpeculationReport::score)
        .def_ro("gain", &SpeculationReport::gain)
        .def_ro("drafts", &SpeculationReport::drafts)
        .def_ro("drafted", &SpeculationReport::drafted)
        .def_ro("accepted", &SpeculationReport::accepted)
        .def_ro("drafted_by_position", &SpeculationReport::drafted_by_position)
        .def_ro("accepted_by_position", &SpeculationReport::accepted_by_position)
        .def_ro("verify_mode", &SpeculationReport::verify_mode)
        .def_ro("verify_counts", &SpeculationReport::verify_counts)
        .def_ro("reduced", &SpeculationReport::reduced)
        .def_ro("tree_drafts", &SpeculationReport::tree_drafts)
        .def_ro("tree_reason", &SpeculationReport::tree_reason)
        .def_ro("rollbacks", &SpeculationReport::rollbacks)
        .def_ro("suppressed", &SpeculationReport::suppressed);

    nb::class_<LoopGuardReport>(module, "LoopGuardReport", "What the loop guard saw and did for one request.")
        .def_ro("mode", &LoopGuardReport::mode)
        .def_ro("triggered", &LoopGuardReport::triggered)
        .def_ro("action", &LoopGuardReport::action)
        .def_ro("reason", &LoopGuardReport::reason)
        .def_ro("interventions", &LoopGuardReport::interventions)
        .def_ro("reasoning_tokens", &LoopGuardReport::reasoning_tokens)
        .def_ro("visible_tokens", &LoopGuardReport::visible_tokens);

    nb::class_<SpeculationTotals>(module, "SpeculationTotals",
                                  "Counts since the start; milliseconds of draft, verify, accept, other.")
        .def_ro("drafts", &SpeculationTotals::drafts)
        .def_ro("drafted", &SpeculationTotals::drafted)
        .def_ro("accepted", &SpeculationTotals::accepted)
        .def_ro("drafted_by_position", &SpeculationTotals::drafted_by_position)
        .def_ro("accepted_by_position", &SpeculationTotals::accepted_by_position)
        .def_ro("verify_counts", &SpeculationTotals::verify_counts)
        .def_ro("reduced", &SpeculationTotals::reduced)
        .def_ro("tree_drafts", &SpeculationTotals::tree_drafts)
        .def_ro("rollbacks", &SpeculationTotals::rollbacks)
        .def_ro("phase_ms", &SpeculationTotals::phase_ms)
        .def_ro("controller_changes", &SpeculationTotals::controller_changes)
        .def_ro("baseline_probes", &SpeculationTotals::baseline_probes)
        .def_ro("suppressions", &SpeculationTotals::suppressions)
        .def_ro("loop_guard_actions", &SpeculationTotals::loop_guard_actions);

    nb::class_<DroppedType>(module, "DroppedType", "A drafter that was asked for and does not run.")
        .def_ro("type", &DroppedType::type)
        .def_ro("reason", &DroppedType::reason);

    nb::class_<SpeculationFacts>(module, "SpeculationFacts", "Drafters of a loaded model.")
        .def_ro("types", &SpeculationFacts::types)
        .def_ro("dropped", &SpeculationFacts::dropped)
        .def_ro("fallback_reason", &SpeculationFacts::fallback_reason)
        .def_ro("reduced_path", &SpeculationFacts::reduced_path)
        .def_ro("reduced_reason", &SpeculationFacts::reduced_reason)
        .def_ro("has_trees", &SpeculationFacts::has_trees)
        .def_ro("tree_reason", &SpeculationFacts::tree_reason);
}

}  // namespace

void bind_speculation(nb::module_& module) {
    bind_drafter_wishes(module);
    bind_depth(module);
    bind_wishes(module);
    bind_counts(module);
    bind_reports(module);
}

}  // namespace paddock
