// The part of Speculator that tells what became of drafts, to the controllers and to those who ask (11 §21).
#include <algorithm>
#include <array>
#include <functional>

#include "core/speculation/draft_counts.h"
#include "core/speculation/draft_log.h"
#include "core/speculation/draft_setting.h"
#include "core/speculation/speculator.h"

namespace paddock {

void Speculator::count(Slot& slot, const Draft& draft, VerifyMode mode, const Verified& verified) {
    slot.request->speculation.verify_mode = name_of(mode);
    count_draft(slot.request->speculation, draft, verified);
    count_draft(state_.metrics.totals.speculation, draft, verified);
    const ReducedReport& reduced = slot.request->speculation.reduced;
    ++state_.metrics.totals.speculation.reduced[ReducedVerification::counted_reason(reduced)];
    // What left the main path says as much of it as a wrong guess.
    const bool has_left = verified.n_accepted > verified.n_main;
    const std::int32_t n_examined = has_left ? verified.n_main + 1 : verified.n_examined;
    const bool was_cut = verified.n_covered == verified.n_accepted && verified.n_covered < draft.size();
    const std::int32_t n_covered = was_cut ? n_examined : draft.size();
    control_.on_verified(slot.id, draft.type, draft.size(), verified.n_main, n_examined, n_covered);
    control_.add_side_chains(slot.id, draft.n_verified() - draft.size(),
                             verified.n_accepted - verified.n_main);
    for (DrafterSet::Member& runner : drafters_.members()) {
        runner.drafter->accepted(slot.id, n_covered, verified.n_main, runner.drafter->type() == draft.type);
    }
}

/// What the controller knows now (11 §21.1).
void Speculator::describe(Slot& slot) {
    SpeculationReport& report = slot.request->speculation;
    const auto runner = std::ranges::find_if(drafters_.members(), [&](const DrafterSet::Member& candidate) {
        return report.active_type == "none" ? is_wanted(slot.request->params->speculation, candidate)
                                            : candidate.name == report.active_type;
    });
    if (runner == drafters_.members().end() || report.types.empty()) {
        return;
    }
    const DepthSetting setting = setting_of(slot, *runner);
    const DepthControl::View view = control_.view(slot.id, runner->drafter->type());
    report.adaptive = setting.adaptive;
    report.controller = setting.controller;
    report.depth = view.depth;
    report.depth_base = view.base;
    report.depth_state = view.state;
    report.fringe = view.fringe;
    report.score = view.score;
    report.gain = view.gain;
}

void Speculator::end_cycle(const CycleWork& work) {
    if (drafters_.empty()) {
        return;
    }
    SpeculationTotals& totals = state_.metrics.totals.speculation;
    const double draft_ms = to_ms(draft_us_);
    const double decode_ms = to_ms(work.decode_us);
    const double accept_ms = to_ms(accept_us_);
    const double total_ms = to_ms(work.total_us);
    const std::array<double, 4> phase_ms{draft_ms, decode_ms, accept_ms,
                                         std::max(0.0, total_ms - draft_ms - decode_ms - accept_ms)};
    std::ranges::transform(totals.phase_ms, phase_ms, totals.phase_ms.begin(), std::plus<>());
    if (n_generating_ > 0) {
        state_.log(log_debug, cycle_line(n_generating_, work.n_rows, phase_ms, total_ms));
    }
    if (work.is_prompt) {
        control_.on_prompt(work.n_rows, decode_ms);
    }
    control_.end_cycle({.is_pure = work.is_pure,
                        .rows = work.n_rows,
                        .model_ms = total_ms - draft_ms,
                        .draft_ms = draft_ms,
                        .n_drafting = n_drafting_,
                        .works = works_,
                        .n_memory_tokens = n_memory_tokens_});
    for (std::size_t controller = 0; controller < totals.controller_changes.size(); ++controller) {
        for (std::size_t kind = 0; kind < totals.controller_changes[controller].size(); ++kind) {
            totals.controller_changes[controller][kind] =
                totals_before_.controller_changes[controller][kind] + control_.changes()[controller][kind];
        }
    }
    totals.baseline_probes = totals_before_.baseline_probes + control_.n_baseline_probes();
    for (Slot& slot : state_.slots) {
        if (slot.state == SlotState::generating && slot.request != nullptr) {
            describe(slot);
        }
    }
}

}  // namespace paddock
