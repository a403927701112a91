// The part of Speculator that looks at what drafts would have been worth that were not verified.
#include <algorithm>

#include "core/speculation/speculator.h"

namespace paddock {

/// As much as could ever be drafted is looked up where that is as cheap as less.
std::int32_t Speculator::whole_limit(const DepthSetting& setting, const DraftRequest& request,
                                     DraftType type) {
    const bool is_compared = setting.is_profit() && !is_model_drafter(type) && request.n_ranks <= 1;
    return is_compared ? std::max(request.limit, setting.base) : 0;
}

std::pair<std::vector<Draft>, std::vector<std::vector<Token>>> Speculator::draft_whole(
    DrafterSet::Member& runner, std::span<const DraftRequest> requests,
    std::span<const std::int32_t> limits) {
    std::vector<DraftRequest> longer(requests.begin(), requests.end());
    for (std::size_t i = 0; i < longer.size(); ++i) {
        longer[i].limit = std::max(requests[i].limit, limits[i]);
    }
    std::vector<Draft> drafts = runner.drafter->draft(longer);
    drafts.resize(requests.size());
    std::vector<std::vector<Token>> whole(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (limits[i] > 0 && drafts[i].size() >= requests[i].n_min) {
            whole[i] = drafts[i].tokens;
        }
        if (limits[i] > 0) {
            drafts[i].cut(requests[i].limit);
        }
    }
    return {std::move(drafts), std::move(whole)};
}

ShadowDraft& Speculator::shadow_of(const Slot& slot, DraftType type) {
    return shadows_[static_cast<std::size_t>(slot.id)][static_cast<std::size_t>(type)];
}

void Speculator::close_shadows(const Slot& slot) {
    for (ShadowDraft& shadow : shadows_[static_cast<std::size_t>(slot.id)]) {
        shadow.close();
    }
}

void Speculator::compare_shadows(const Slot& slot) {
    for (const DrafterSet::Member& runner : drafters_.members()) {
        const DraftType type = runner.drafter->type();
        ShadowDraft& shadow = shadow_of(slot, type);
        if (!shadow.is_open()) {
            continue;
        }
        if (const auto seen = shadow.compare(slot.record.tokens, slot.request->pending)) {
            control_.on_compared(slot.id, type, seen->n_told, seen->n_accepted, seen->n_examined);
        }
    }
}

/// `off`: slots that were not asked. The drafter hears nothing of the outcome: to it these were no drafts.
void Speculator::watch(DrafterSet::Member& runner, std::span<Slot* const> off) {
    const DraftType type = runner.drafter->type();
    std::vector<DraftRequest> requests;
    std::vector<ShadowDraft*> shadows;
    for (const Slot* slot : off) {
        ShadowDraft& shadow = shadow_of(*slot, type);
        if (shadow.is_open() || !control_.wants_look(slot->id, type)) {
            continue;
        }
        const DepthSetting setting = setting_of(*slot, runner);
        requests.push_back({.slot = slot->id,
                            .tokens = slot->record.tokens,
                            .pending = slot->request->pending,
                            .limit = setting.base,
                            .n_min = setting.n_min,
                            .p_min = setting.p_min});
        shadows.push_back(&shadow);
    }
    if (requests.empty()) {
        return;
    }
    const std::vector<Draft> drafts = runner.drafter->draft(requests);
    for (std::size_t i = 0; i < requests.size() && i < drafts.size(); ++i) {
        const bool is_found = !drafts[i].empty() && drafts[i].size() >= requests[i].n_min;
        control_.on_look(requests[i].slot, type, is_found);
        if (is_found) {
            shadows[i]->open(drafts[i].tokens, requests[i].tokens.size(), 0);
        }
    }
}

}  // namespace paddock
