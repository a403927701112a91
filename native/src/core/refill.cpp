#include "core/refill.h"

namespace paddock {

namespace {

constexpr std::int32_t max_refills = 3;

}  // namespace

bool start_refill(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    ++state.metrics.totals.refills;
    if (++request.n_refills >= max_refills) {
        state.fail(slot, ErrorKind::server, "The memory of this request was lost three times");
        state.clear(slot);
        return false;
    }
    // Its rows of this cycle were made for positions that are gone.
    slot.drops_rows = true;
    slot.rows_in_batch = 0;
    request.draft = {};
    request.verify_rows.clear();
    if (slot.state == SlotState::generating || slot.state == SlotState::refill) {
        if (slot.state == SlotState::generating) {
            request.refill = slot.record.tokens;
        }
        slot.state = SlotState::refill;
    } else {
        slot.state = SlotState::processing_prompt;
        slot.n_prompt_cached = 0;
        slot.n_prompt_processed = 0;
    }
    state.clear(slot);
    return true;
}

void end_refill(Slot& slot) {
    if (slot.state == SlotState::refill && slot.record.tokens.size() == slot.request->refill.size()) {
        slot.state = SlotState::generating;
        slot.request->refill.clear();
    }
}

}  // namespace paddock
