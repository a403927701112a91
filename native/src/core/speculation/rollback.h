// Memory of a slot goes back to the tokens that stand (11 §13).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/decode_state.h"

namespace paddock {

/// How memory can lose drafted tokens again; found once for a context.
enum class RollbackRoute {
    /// Single positions can be removed.
    trim,
    /// The running state has copies of its last steps. A draft that is longer goes back by `redecode`.
    snapshot,
    /// The running state is saved before the rows of a draft, and what stands is decoded again.
    redecode,
    /// Neither: nothing is drafted.
    none,
};

RollbackRoute rollback_route(const ContextFacts& facts);

/// Before the rows of a draft of `n_drafted` tokens are built. False: the state could not be saved, and
/// nothing may be drafted.
bool save_for_rollback(DecodeState& state, Slot& slot, RollbackRoute route, std::int32_t n_drafted);

/// What memory holds of the slot can't become what its list says: it refills, or forgets what it holds if its
/// request has ended.
void give_up_memory(DecodeState& state, Slot& slot);

/// The list of the slot is right and memory holds `n_in_memory` tokens, at least as many. Afterwards both
/// agree, or the slot refills; a slot whose request has ended and whose memory can't go back forgets it.
void roll_back(DecodeState& state, Slot& slot, RollbackRoute route, std::int32_t n_in_memory);

}  // namespace paddock
