// Drafts of a separate, smaller model (11 §5).
#pragma once

#include <cstddef>

#include "core/context.h"
#include "core/speculation/draft_candidates.h"
#include "core/speculation/drafter.h"
#include "core/speculation/random_stream.h"
#include "core/vocabulary.h"

namespace paddock {

/// Keeps a copy of each slot's text in the drafter's memory. It is put right when the slot drafts again, so
/// that nobody has to tell of rejected tokens, context shifts or restored states.
class DraftModel final : public Drafter {
  public:
    /// `context` and `vocabulary` are the drafter's own, have a sequence for each slot, let go of single
    /// tokens, and outlive this. `n_vocab_target` may be more than the drafter's tokens, or fewer.
    DraftModel(Context& context, const Vocabulary& vocabulary, std::int32_t n_vocab_target,
               std::int32_t n_slots);

    DraftType type() const override { return DraftType::draft_simple; }
    std::int32_t own_max() const override { return context_.facts().n_ctx_slot; }

    void begin(SequenceId /*slot*/, std::span<const Token> /*tokens*/) override {}
    /// At most one request for each slot.
    std::vector<Draft> draft(std::span<const DraftRequest> requests) override;
    void accepted(SequenceId /*slot*/, std::int32_t /*n_drafted*/, std::int32_t /*n_accepted*/,
                  bool /*own*/) override {}
    void reset(SequenceId slot) override { forget(slot); }
    bool is_usable() const override;
    const char* reason() const override { return is_usable() ? "" : "draft-decode-failed"; }

  private:
    enum class Outcome { good, no_room, failed };

    /// A slot during one call.
    struct Lane {
        const DraftRequest* request = nullptr;
        Draft draft;
        /// Most tokens that the drafter's memory and the request allow.
        std::int32_t limit = 0;
        RandomStream random{0};
        /// Logarithm of the chance of the draft so far.
        double score = 0.0;
        /// Wants another token.
        bool goes_on = false;
    };

    Lane open(const DraftRequest& request);
    bool can_read(Token token) const { return token >= 0 && token < n_own_; }
    /// Cuts the slot's memory back to what it has in common with the text.
    void align(SequenceId slot, std::span<const Token> text);
    void add_row(SequenceId slot, Position position, Token token, bool output);
    bool add_steps();
    /// Decodes the rows that were added; each output makes its lane's draft longer.
    Outcome decode_rows();
    Outcome decode_window(std::span<const BatchRow> window);
    Lane& lane_of(SequenceId slot);
    void extend(Lane& lane, std::span<const float> logits) const;
    static void add_side_chains(Lane& lane, std::span<const RankedLogit> best);
    void forget(SequenceId slot);
    /// Whether that made room.
    bool forget_others();

    Context& context_;
    const Vocabulary& vocabulary_;
    std::int32_t n_own_;
    std::size_t n_shared_;
    std::int32_t failures_in_a_row_ = 0;
    /// Tokens in memory, for each slot.
    std::vector<std::vector<Token>> mirrors_;
    // Of one call; kept for their memory.
    std::vector<Lane> lanes_;
    std::vector<BatchRow> rows_;
};

}  // namespace paddock
