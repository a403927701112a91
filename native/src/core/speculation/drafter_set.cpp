#include "core/speculation/drafter_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/speculation/draft_model.h"
#include "core/speculation/ngram_drafters.h"
#include "core/speculation/reduced_route.h"
#include "core/speculation/tree_drafting.h"

namespace paddock {

namespace {

constexpr const char* none_requested = "none-requested";

}  // namespace

DrafterSet::DrafterSet(DecodeState& state, RollbackRoute route) : state_(state) {
    const std::vector<std::string>& asked = state.params.speculation.types;
    tell_route();
    for (const std::string& name : asked) {
        if (std::ranges::find(facts_.types, name) != facts_.types.end()) {
            continue;
        }
        std::string reason;
        std::string detail;
        std::unique_ptr<Drafter> drafter = make(name, route, reason, detail);
        if (drafter == nullptr) {
            drop(name, reason, detail);
            continue;
        }
        const std::string warning = ngram_warning(drafter->type(), state.params.speculation);
        if (!warning.empty()) {
            state_.log(log_warning, warning);
        }
        facts_.types.push_back(name);
        members_.push_back({.drafter = std::move(drafter), .name = name});
    }
    if (asked.empty()) {
        facts_.fallback_reason = none_requested;
    }
    const SpeculationParams& params = state.params.speculation;
    facts_.tree_reason = params.branch_budget == 0 ? none_requested
                         : members_.empty()        ? facts_.fallback_reason
                                                   : tree_obstacle(params, state.facts());
    facts_.has_trees = facts_.tree_reason.empty();
}

void DrafterSet::tell_route() {
    ReducedRoute route = reduced_route(state_.params.speculation.reduced, state_.facts());
    if (!route.reason.empty()) {
        state_.log(log_warning, "--spec-reduced device does not run, host does: " + route.reason);
    }
    facts_.reduced_path = std::move(route.path);
    facts_.reduced_reason = std::move(route.reason);
}

std::unique_ptr<Drafter> DrafterSet::make(const std::string& name, RollbackRoute route, std::string& reason,
                                          std::string& detail) {
    const std::optional<DraftType> type = draft_type_of(name);
    if (!type.has_value()) {
        reason = "type-not-built";
    } else if (!state_.facts().has_memory) {
        reason = "memory-none";
    } else if (route == RollbackRoute::none) {
        reason = "no-rollback";
    } else if (*type == DraftType::draft_simple) {
        return make_draft_model(reason);
    } else {
        return make_ngram_drafter(*type, state_.params.speculation,
                                  static_cast<std::int32_t>(state_.slots.size()),
                                  state_.model.vocabulary->size(), reason, detail);
    }
    return nullptr;
}

std::unique_ptr<Drafter> DrafterSet::make_draft_model(std::string& reason) {
    const Loaded& model = state_.model;
    if (model.draft_context == nullptr) {
        reason = model.draft_problem.empty() ? "draft-file-missing" : model.draft_problem;
        return nullptr;
    }
    return std::make_unique<DraftModel>(*model.draft_context, *model.draft_vocabulary,
                                        model.vocabulary->size(),
                                        static_cast<std::int32_t>(state_.slots.size()));
}

/// The first reason is told while something else still runs, the last one when nothing does (11 §3.4).
void DrafterSet::drop(const std::string& name, const std::string& reason, const std::string& detail) {
    state_.log(log_warning,
               "drafting by " + name + " does not run: " + reason + (detail.empty() ? "" : ": " + detail));
    facts_.dropped.push_back({.type = name, .reason = reason});
    facts_.fallback_reason = members_.empty() ? reason : facts_.dropped.front().reason;
}

void DrafterSet::drop_unusable() {
    for (auto member = members_.begin(); member != members_.end();) {
        if (member->drafter->is_usable()) {
            ++member;
            continue;
        }
        const std::string name = member->name;
        const std::string reason = member->drafter->reason();
        member = members_.erase(member);
        std::erase(facts_.types, name);
        drop(name, reason, {});
    }
}

}  // namespace paddock
