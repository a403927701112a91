// What a drafter's logits say of the next token (11 §5.5).
#pragma once

#include <span>
#include <vector>

#include "core/speculation/draft.h"

namespace paddock {

struct RankedLogit {
    Token token = 0;
    float logit = 0.0F;
};

/// The 10 greatest logits of a row, greatest first, of equal ones the lower token first. Only finite ones
/// count, so that there may be fewer, or none.
std::vector<RankedLogit> best_logits(std::span<const float> logits);

/// Probability of the first one among them, at temperature 1. `best` is not empty.
float top_probability(std::span<const RankedLogit> best);

/// Their softmax at a temperature above 0.
std::vector<DraftCandidate> softmax(std::span<const RankedLogit> best, float temperature);

/// The token that a number in [0, 1) falls on. `candidates` is not empty.
Token drawn(std::span<const DraftCandidate> candidates, double unit);

}  // namespace paddock
