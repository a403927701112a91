// Tasks that act on slots or adapters and need no decode (10 §19.7, §20, §22.4).
#pragma once

#include "core/decode_state.h"

namespace paddock {

/// Carries it out and sends its result. False: the slot that it names is busy, and it has to wait.
bool run_action(DecodeState& state, const Task& task);

}  // namespace paddock
