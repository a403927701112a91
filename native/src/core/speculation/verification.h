// Which drafted tokens stand, and what replaces the first that does not (11 §10, §14.1).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/sampling.h"
#include "core/speculation/draft.h"
#include "core/speculation/report.h"

namespace paddock {

/// `exact` and `rejection` give the distribution of plain decoding, `match_first` only resembles it.
enum class VerifyMode { exact, rejection, match_first };

std::string_view name_of(VerifyMode mode);
/// Of 11 §18; an unknown name is `exact`.
VerifyMode verify_mode_of(std::string_view name);

/// The mode of one draft: what was asked for, where sampler and draft allow it (11 §10.1).
VerifyMode mode_for(VerifyMode asked, const Draft& draft, const Sampler& sampler);

struct VerifyInput {
    const Draft& draft;
    VerifyMode mode = VerifyMode::exact;
    /// Of the request; `match_first` compares logits under it.
    float temperature = 0.0F;
    /// Whether an active grammar ends the loop (10 §23.6).
    bool grammar_blocks = false;
    /// Whether each choice looks at every token of its row.
    bool whole_rows = false;
    /// Logits of the row of the pending token, of the first drafted one, and so on; of a tree in the order of
    /// its nodes.
    std::function<std::span<const float>(std::int32_t row)> logits;
    /// Takes a token that the sampler has accepted; false when the request ended with it.
    std::function<bool(Token token, std::span<const float> logits)> emit;
};

struct Verified {
    /// Tokens that were emitted, and those of them that were drafted.
    std::int32_t n_emitted = 0;
    std::int32_t n_accepted = 0;
    /// Of the accepted ones those of the main path: less than all where a side chain was right.
    std::int32_t n_main = 0;
    /// Drafted tokens whose fate is known, and those that a judgement of the draft may count (11 §14.2).
    std::int32_t n_examined = 0;
    std::int32_t n_covered = 0;
    /// The request goes on.
    bool goes_on = true;
    VerifyCounts counts;
    /// Node of the draft's tree that the last accepted token stands for.
    std::int32_t last_node = 0;
};

/// Emits at least one token; `input.draft` has no tree. Throws what Sampler::sample throws.
Verified verify(Sampler& sampler, const VerifyInput& input);

}  // namespace paddock
