// The candidates of one choice, as libllama's filters take them. The memory is kept from token to token.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/best_logits.h"
#include "core/probabilities.h"
#include "core/types.h"
#include "llama.h"

namespace paddock {

class Candidates {
  public:
    /// Every token of the vocabulary. Logits that aren't finite make their token impossible. False: all are.
    bool fill(std::span<const float> logits);

    /// The `n_best` tokens of the greatest logits, a few more, and those of `touched`: tokens whose logits
    /// the filters are going to change. A chain that keeps the best `n_best` then chooses as it would from
    /// the whole vocabulary. False, with unspecified candidates, when that can't be promised: on equal
    /// logits, whose order would differ, on broken ones, and when so many are asked for that it doesn't pay.
    bool fill_best(BestLogits& best, std::span<const float> logits, std::size_t n_best,
                   std::span<const Token> touched);

    /// A single token, chosen already.
    void set_only(Token token);

    /// Marks what the filter refuses, and whether anything is left. Throws std::invalid_argument when that
    /// takes longer than 5 seconds.
    bool restrict_by(llama_sampler* filter);

    /// Runs filters and selection. Nothing when every candidate was ruled out.
    std::optional<Token> choose(llama_sampler* chain);

    /// What is left after `choose` or `set_only`.
    std::vector<ScoredToken> left() const;

  private:
    void reserve(std::size_t n_vocab);
    void add_touched(std::span<const float> logits, float least, std::span<const Token> touched);
    bool has_equal_logits();

    std::vector<llama_token_data> data_;
    llama_token_data_array array_{};
    std::vector<float> scratch_;
};

}  // namespace paddock
