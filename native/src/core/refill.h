// Tokens that were lost from memory are evaluated again, without sampling (10 §14.7).
#pragma once

#include "core/decode_state.h"

namespace paddock {

/// The slot's memory is cleared and its tokens become prompt rows of the next cycles. False when the request
/// has had its last refill; it was ended with an error.
bool start_refill(DecodeState& state, Slot& slot);

/// Back to generating once everything is in memory.
void end_refill(Slot& slot);

}  // namespace paddock
