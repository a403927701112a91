// Softmax over candidates, as probability records show it (10 §17).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling.h"

namespace paddock {

/// A token that could be chosen, with its unnormalised log-probability.
struct ScoredToken {
    Token token = -1;
    float logit = 0.0F;
};

/// Record over a whole vocabulary: `logits[t]` is token t's. Pieces stay empty. At most `n_top` entries on
/// top, equal ones in the order of their ids. Values that aren't numbers count as impossible; when all are,
/// so is the chosen one.
TokenRecord record_of(std::span<const float> logits, Token chosen, std::int32_t n_top);

/// The same over the candidates that filters left; a chosen token that isn't among them has probability 0.
TokenRecord record_of(std::span<const ScoredToken> candidates, Token chosen, std::int32_t n_top);

/// Probabilities of candidates that filters left; impossible ones are missing.
std::vector<TokenChance> chances_of(std::span<const ScoredToken> candidates);

}  // namespace paddock
