// A task takes over a slot (10 §7, §19).
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/decode_state.h"

namespace paddock {

struct LaunchProblem {
    ErrorKind kind = ErrorKind::invalid_request;
    std::string message;
};

/// A request that passed every check, and the scales that its slot takes.
struct Prepared {
    std::unique_ptr<SlotRequest> request;
    std::vector<AdapterScale> adapters;
};

/// Everything that may refuse a task, before anybody's memory is touched for it (10 §7.1). An activated
/// adapter that the prompt does not invoke comes switched off (10 §19.5).
std::variant<Prepared, LaunchProblem> prepare(const DecodeState& state, const Task& task);

/// The request takes over an idle slot; can't be refused.
void launch(DecodeState& state, Slot& slot, Prepared prepared);

/// Whether a slot's prompt may be used under other scales (10 §19.3).
bool keeps_prompt(const DecodeState& state, const Slot& slot, const std::vector<AdapterScale>& wanted);

/// Identity of memory computed under these scales (10 §19.4).
LoraKey key_of(const DecodeState& state, const std::vector<AdapterScale>& scales);

}  // namespace paddock
