// Drafts what followed the newest earlier occurrence of the last `n` tokens (11 §6.1). Keeps nothing between
// calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/ngram_drafter.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

class NgramSimple final : public NgramDrafter {
  public:
    /// REQUIRES: `n` and `m` at least 1; `min_hits` says nothing here.
    NgramSimple(NgramLengths lengths, std::int32_t n_slots);

    DraftType type() const override { return DraftType::ngram_simple; }
    std::int32_t own_max() const override { return lengths_.m; }

    void begin(SequenceId /*slot*/, std::span<const Token> /*tokens*/) override {}
    void accepted(SequenceId /*slot*/, std::int32_t /*n_drafted*/, std::int32_t /*n_accepted*/,
                  bool /*own*/) override {}
    void reset(SequenceId /*slot*/) override {}

  protected:
    void propose(const DraftRequest& request, std::vector<Token>& tokens) override;

  private:
    NgramLengths lengths_;
    /// The pattern, last token first, and for each number of its tokens that match how many still do when the
    /// next one doesn't. Kept for their memory only.
    std::vector<Token> reversed_;
    std::vector<std::size_t> fallback_;

    void prepare(const DraftRequest& request);
    /// Where the pattern begins in the text; 0: nowhere that counts.
    std::size_t find(std::span<const Token> text) const;
};

}  // namespace paddock
