// A task takes over a slot (10 §7, §19).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/decode_state.h"

namespace paddock {

struct LaunchProblem {
    ErrorKind kind = ErrorKind::invalid_request;
    std::string message;
};

/// Starts the task on an idle slot; a problem leaves the slot as it was (10 §7.1).
std::optional<LaunchProblem> launch(DecodeState& state, Slot& slot, const Task& task);

/// Whether a slot's prompt may be used under other scales (10 §19.3).
bool keeps_prompt(const DecodeState& state, const Slot& slot, const std::vector<AdapterScale>& wanted);

/// Identity of memory computed under these scales (10 §19.4).
LoraKey key_of(const DecodeState& state, const std::vector<AdapterScale>& scales);

}  // namespace paddock
