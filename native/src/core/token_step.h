// What a slot does with its output row: a token, or an embedding (10 §12.4, §15.2, §18).
#pragma once

#include "core/decode_state.h"

namespace paddock {

/// Copies the prompt of a parent to the slots that wait for it; they then sample from the same row (10
/// §15.2).
void fan_out(DecodeState& state, Slot& parent);

/// Takes the slot's row of the window decoded last, `slot.window_row`; releases the slot when it is done.
void step(DecodeState& state, Slot& slot);

}  // namespace paddock
