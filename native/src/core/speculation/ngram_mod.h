// Drafts from one table of following tokens that all slots share (11 §6.5): what one wrote helps the others.
// 16 MiB in all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/ngram_drafter.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

class NgramMod final : public NgramDrafter {
  public:
    /// Shorter matches find too much that has nothing to do with the text; worth a warning at the start.
    static constexpr std::int32_t least_sound_match = 16;

    /// REQUIRES: `match` at least 1, `min` at most `max`.
    NgramMod(NgramModLengths lengths, std::int32_t n_slots);

    DraftType type() const override { return DraftType::ngram_mod; }
    std::int32_t own_min() const override { return lengths_.min; }
    std::int32_t own_max() const override { return lengths_.max; }

    void begin(SequenceId slot, std::span<const Token> tokens) override;
    void accepted(SequenceId slot, std::int32_t n_drafted, std::int32_t n_accepted, bool own) override;
    void reset(SequenceId slot) override;

    /// Entries of the table that hold a token.
    std::size_t n_used() const { return n_used_; }

  protected:
    void propose(const DraftRequest& request, std::vector<Token>& tokens) override;

  private:
    struct Slot {
        /// n-grams of the text that are in the table, those at positions 0 and up; in which table.
        std::size_t n_added = 0;
        std::uint64_t generation = 0;
        /// Drafts in a row of which little was accepted.
        std::int32_t n_poor = 0;
    };

    NgramModLengths lengths_;
    /// Multiplier of a pattern's first token in its hash.
    std::uint64_t first_factor_ = 1;
    /// The token that follows; `nothing` where none is known.
    std::vector<Token> followers_;
    std::size_t n_used_ = 0;
    /// Grows whenever the table is emptied: then every slot adds its text again.
    std::uint64_t generation_ = 0;
    std::vector<Slot> slots_;

    void clear();
    /// Adds what is new of the text when that is at least `step` n-grams.
    void add(Slot& slot, std::span<const Token> text, std::size_t step);
    std::uint64_t rolled(std::uint64_t hash, Token left, Token entered) const;
};

}  // namespace paddock
