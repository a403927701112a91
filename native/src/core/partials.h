// What a generating slot sends to its client (10 §8.10, §16.5, §16.14).
#pragma once

#include "core/decode_state.h"

namespace paddock {

/// Progress of the prompt, where the request asked for it.
void send_progress(DecodeState& state, const Slot& slot);

/// Text that may go out now; skipped when there is nothing to tell.
void send_partial(DecodeState& state, const Slot& slot, Emission emission);

/// The last result of a request.
void send_final(DecodeState& state, Slot& slot);

}  // namespace paddock
