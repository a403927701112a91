// From a task to a slot: choice, exchange with the RAM cache, launch (10 §4.4-4.7, §6, §7).
#pragma once

#include <deque>
#include <vector>

#include "core/decode_state.h"
#include "core/task_queue.h"

namespace paddock {

/// Takes new works behind those that wait already, and starts what finds its slots. Whatever does not stays
/// in `state.deferred`. True when a slot was launched.
bool dispatch(DecodeState& state, std::deque<Work> arrived);

/// Ends tasks wherever they are: waiting or running; parents and children go together (10 §22.1-22.2).
void cancel_tasks(DecodeState& state, const std::vector<TaskId>& ids);

/// Adapters that a slot's next rows are evaluated with: those before the start of an activated adapter run
/// without it (10 §19.6).
std::vector<AdapterScale> adapters_of_next_rows(const DecodeState& state, const Slot& slot);

}  // namespace paddock
