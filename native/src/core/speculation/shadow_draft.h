// A draft that was not verified, or not as a whole, compared with what is generated: it tells how good longer
// drafts would be, and costs no row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/types.h"

namespace paddock {

class ShadowDraft {
  public:
    /// What is known of a draft. The first `n_told` tokens were known before.
    struct Outcome {
        std::int32_t n_told = 0;
        std::int32_t n_accepted = 0;
        /// One more than were right, where the next was wrong.
        std::int32_t n_examined = 0;
    };

    bool is_open() const { return !tokens_.empty(); }
    /// `tokens` are guessed to follow the pending token behind `n_text` tokens. The first `n_told` of them
    /// are verified, and the outcome told in another way.
    void open(std::span<const Token> tokens, std::size_t n_text, std::int32_t n_told);
    /// What the text, as it is now, says of further tokens; nothing where it says nothing new. Closed once no
    /// more can be said.
    std::optional<Outcome> compare(std::span<const Token> text, Token pending);
    void close() { tokens_.clear(); }

  private:
    std::vector<Token> tokens_;
    /// Place of the first one in the text.
    std::size_t start_ = 0;
    std::size_t n_told_ = 0;
};

}  // namespace paddock
