// Drafts the likeliest next tokens by counts of n-grams, of the slot's own text and of two files (11 §6.6).
// Counting takes up to 250 bytes for each token of a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/speculation/ngram_counts.h"
#include "core/speculation/ngram_drafter.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

class NgramCache final : public NgramDrafter {
  public:
    /// Reads the files, lookup caches of llama.cpp for a vocabulary of `n_vocab`; an empty name is no file.
    /// One that can't be read makes the drafter unusable.
    NgramCache(const std::string& static_file, const std::string& dynamic_file, std::int32_t n_slots,
               std::int32_t n_vocab);

    DraftType type() const override { return DraftType::ngram_cache; }
    std::int32_t own_max() const override { return longest_cache_draft; }
    bool is_usable() const override { return problem_.empty(); }
    const char* reason() const override { return problem_.empty() ? "" : "cache-file"; }
    /// The file that can't be read, why, and what to do; empty: all can.
    const std::string& problem() const { return problem_; }

    void begin(SequenceId slot, std::span<const Token> tokens) override;
    void accepted(SequenceId /*slot*/, std::int32_t /*n_drafted*/, std::int32_t /*n_accepted*/,
                  bool /*own*/) override {}
    void reset(SequenceId slot) override;

  protected:
    void propose(const DraftRequest& request, std::vector<Token>& tokens) override;

  private:
    struct Slot {
        /// What is counted: the text as it was last seen, and the token behind it.
        std::vector<Token> text;
        NgramCounts counts;
        /// The last 0 … 4 tokens of the text; `none` where it is shorter.
        std::array<NgramCounts::Node, NgramCounts::max_size + 1> ends = no_ends;

        void append(Token token);
        /// Keeps the first `n_kept` tokens.
        void cut(std::size_t n_kept);
        void update(std::span<const Token> tokens, std::size_t n_kept);

      private:
        void remove_last();
    };
    static constexpr std::array<NgramCounts::Node, NgramCounts::max_size + 1> no_ends{
        NgramCounts::root, NgramCounts::none, NgramCounts::none, NgramCounts::none, NgramCounts::none};

    NgramCounts static_;
    NgramCounts dynamic_;
    std::string problem_;
    std::vector<Slot> slots_;

    /// What follows `text`, of which only the end matters.
    std::optional<Token> next(NgramCounts& own, std::span<const Token> text);
};

}  // namespace paddock
