#include "core/speculation/rollback.h"

#include <algorithm>

#include "core/refill.h"

namespace paddock {

namespace {

/// Whether everything that the next token looks at is still there (10 §8.6).
bool has_history(Context& context, const Slot& slot) {
    const ContextFacts& facts = context.facts();
    if (facts.n_swa <= 0) {
        return true;
    }
    const Position first = context.position_min(slot.id);
    return first == 0 || (first > 0 && first < std::max(0, slot.n_tokens() - facts.n_swa));
}

/// What stands and is not in the saved state: from its length on.
bool decode_again(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    const auto n_saved = static_cast<std::size_t>(request.n_saved_tokens);
    Context& context = state.context();
    if (!context.write_state(slot.id, request.saved_state, true) ||
        !context.remove(slot.id, request.n_saved_tokens, end_position)) {
        return false;
    }
    std::vector<BatchRow> rows;
    for (std::size_t i = n_saved; i < slot.record.tokens.size(); ++i) {
        rows.push_back({.token = slot.record.tokens[i],
                        .position = static_cast<Position>(i),
                        .sequence = slot.id,
                        .output = false});
    }
    const std::int32_t code = context.decode(rows);
    state.metrics.on_decode(code, state.busy_slots());
    return code == 0;
}

}  // namespace

RollbackRoute rollback_route(const ContextFacts& facts) {
    switch (facts.removal) {
        case Removal::partial: return RollbackRoute::trim;
        case Removal::recurrent: return RollbackRoute::snapshot;
        case Removal::full: return RollbackRoute::redecode;
        case Removal::none: break;
    }
    return RollbackRoute::none;
}

bool save_for_rollback(DecodeState& state, Slot& slot, RollbackRoute route, std::int32_t n_drafted) {
    SlotRequest& request = *slot.request;
    request.saved_state.clear();
    const bool is_in_reach = route == RollbackRoute::snapshot && n_drafted <= state.facts().n_rs_seq;
    if (route == RollbackRoute::trim || is_in_reach) {
        return true;
    }
    request.saved_state = state.context().read_state(slot.id, true);
    request.n_saved_tokens = slot.n_tokens();
    return !request.saved_state.empty();
}

/// A request is never lost to drafting: one that had to refill drafts no more.
void give_up_memory(DecodeState& state, Slot& slot) {
    ++slot.request->speculation.rollbacks.refill;
    slot.request->speculation.types.clear();
    slot.request->speculation.fallback_reason = "no-rollback";
    ++state.metrics.totals.speculation.rollbacks.refill;
    if (!slot.request->has_ended()) {
        start_refill(state, slot);
    } else {
        state.clear(slot);
    }
}

void roll_back(DecodeState& state, Slot& slot, RollbackRoute route, std::int32_t n_in_memory) {
    RollbackCounts& own = slot.request->speculation.rollbacks;
    RollbackCounts& all = state.metrics.totals.speculation.rollbacks;
    if (slot.n_tokens() == n_in_memory) {
        ++own.none;
        ++all.none;
    } else if (!slot.request->saved_state.empty()) {
        if (!decode_again(state, slot)) {
            give_up_memory(state, slot);
            return;
        }
        ++own.redecode;
        ++all.redecode;
    } else {
        const bool is_trim = route == RollbackRoute::trim;
        if (!state.context().remove(slot.id, slot.n_tokens(), end_position) ||
            (is_trim && !has_history(state.context(), slot))) {
            give_up_memory(state, slot);
            return;
        }
        ++(is_trim ? own.trim : own.snapshot);
        ++(is_trim ? all.trim : all.snapshot);
    }
}

}  // namespace paddock
