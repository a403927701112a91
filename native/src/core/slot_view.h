// What readers see of a slot, and what is told of its request's times (10 §24.4, 12 §15).
#pragma once

#include "core/slot.h"

namespace paddock {

/// `with_texts`: prompt and generated text too (10 §24.6). For a slot without a request: its last one's view.
SlotView view_of(const Slot& slot, std::int32_t n_ctx_slot, bool with_texts, Micros now);

/// Of a slot with a request, as of `now`.
Timings timings_of(const Slot& slot, Micros now);

}  // namespace paddock
