#include "core/speculation/reduced_verification.h"

#include <string_view>
#include <utility>

#include "core/speculation/reduced_plan.h"

namespace paddock {

namespace {

constexpr std::string_view path_off = "off";

bool is_eligible(const ReducedReport& report) { return report.view_reason == view_reason::eligible; }

}  // namespace

ReducedVerification::ReducedVerification(const SpeculationParams& params, std::string path)
    : path_(std::move(path)),
      is_disabled_(path_ == path_off),
      is_for_block_drafters_(params.reduced_drafters == "block") {}

ReducedReport ReducedVerification::at_start() const {
    return {.path = path_, .reason = is_disabled_ ? "disabled" : "", .view_reason = "", .k = 1};
}

void ReducedVerification::open_window(DecodeState& state, VerifyMode asked, std::int32_t n_rows) const {
    ReducedWindow window(n_rows);
    const auto drafts = [](const Slot& slot) {
        return slot.request != nullptr && !slot.request->verify_rows.empty();
    };
    for (Slot& slot : state.slots) {
        if (drafts(slot)) {
            decide(slot, asked, window);
        }
    }
    if (window.is_lean()) {
        return;
    }
    for (Slot& slot : state.slots) {
        if (drafts(slot) && is_eligible(slot.request->speculation.reduced)) {
            slot.request->speculation.reduced.view_reason = view_reason::coverage;
        }
    }
}

void ReducedVerification::decide(Slot& slot, VerifyMode asked, ReducedWindow& window) const {
    SlotRequest& request = *slot.request;
    const ReducedPlan plan = plan_reduced({.sampling = request.params->sampling,
                                           .n_probs = request.params->n_probs,
                                           .mode = mode_for(asked, request.draft, *request.sampler),
                                           .has_side_chains = !request.draft.tree.empty(),
                                           .is_disabled = is_disabled_,
                                           .is_for_block_drafters = is_for_block_drafters_});
    request.takes_whole_rows = plan.is_forbidden;
    ReducedReport& report = request.speculation.reduced;
    report = {.path = path_, .reason = std::string(plan.reason), .view_reason = "", .k = plan.k};
    if (!plan.is_on) {
        return;
    }
    const std::int32_t n_needed = request.sampler->n_best_needed();
    report.view_reason = window.admit({.k = plan.k,
                                       .is_reasoning = request.sampler->is_reasoning(),
                                       .is_enough = n_needed > 0 && n_needed <= plan.k,
                                       .rows = request.verify_rows,
                                       .n_drafted = request.draft.size()});
}

std::string ReducedVerification::counted_reason(const ReducedReport& report) {
    const bool is_refused =
        !report.view_reason.empty() && !is_eligible(report) && report.view_reason != view_reason::coverage;
    return is_refused ? report.view_reason : report.reason;
}

}  // namespace paddock
