// What a request may change of the server's drafting (11 §18.2).
#pragma once

#include <string>
#include <vector>

#include "core/speculation/speculation_params.h"

namespace paddock {

/// Every violation, in words that name the field, its value and its range; empty when all is well. `served`:
/// valid parameters of the server.
std::vector<std::string> problems_of(const SpeculationRequest& request, const SpeculationParams& served);

}  // namespace paddock
