// Whether a draft may be judged by the few best tokens of its rows alone, as far as the request says (11
// §11.1).
#pragma once

#include <cstdint>
#include <string_view>

#include "core/sampling.h"
#include "core/speculation/verification.h"

namespace paddock {

struct ReducedCase {
    /// The values of the request.
    const SamplingParams& sampling;
    std::int32_t n_probs = 0;
    /// Of the draft.
    VerifyMode mode = VerifyMode::exact;
    bool has_side_chains = false;
    /// The command line allows it for no draft, and only for those of a block drafter, which no type of this
    /// build is.
    bool is_disabled = false;
    bool is_for_block_drafters = false;
};

struct ReducedPlan {
    bool is_on = false;
    /// Tokens that are enough, 1 when it is off.
    std::int32_t k = 1;
    /// Of 11 §11.1.
    std::string_view reason;
    /// The command line ruled it out, not the request.
    bool is_forbidden = false;
};

ReducedPlan plan_reduced(const ReducedCase& of);

}  // namespace paddock
