// Prompts into a batch: what is reused, what is evaluated, where visits end (10 §8, §13).
#pragma once

#include "core/batch.h"
#include "core/decode_state.h"

namespace paddock {

/// Puts rows of a filling slot into the batch, as many as fit. Slots whose prompt can't be served are
/// released with their result.
void fill_prompt(DecodeState& state, Slot& slot, Batch& batch);

/// The prompt stands whole in memory or batch: the sampler takes it in, and the slot waits for its output
/// row.
void complete_prompt(DecodeState& state, Slot& slot);

}  // namespace paddock
