// The greatest logits of a row, found without looking at each token of the vocabulary one by one (11 §11.7).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/probabilities.h"
#include "core/types.h"

namespace paddock {

/// The memory is kept from row to row. Logits that aren't numbers count as missing.
class BestLogits {
  public:
    /// The token of the greatest logit. Nothing when several share it, and when it isn't finite.
    std::optional<Token> greatest(std::span<const float> logits);

    /// Puts the `n` greatest, and a few more, into `found`. False when it isn't worth it or can't be: so many
    /// are asked for that most of the row would do, too few are finite, or the greatest is not.
    bool find(std::span<const float> logits, std::size_t n);
    /// In the order of their ids.
    std::span<const ScoredToken> found() const { return found_; }
    /// Every logit of the row that is as great, or greater, is among those found.
    float least() const { return least_; }

  private:
    void measure_blocks(std::span<const float> logits);

    /// Greatest logit of each block of the row, and working memory.
    std::vector<float> block_maxima_;
    std::vector<float> scratch_;
    std::vector<ScoredToken> found_;
    float least_ = 0.0F;
};

}  // namespace paddock
