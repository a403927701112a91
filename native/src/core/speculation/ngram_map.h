// Drafts what followed the last `n` tokens before, found by hash and ruled by how well it did (11 §6.2-6.4).
// Takes 1 MiB for each slot that generates and up to 80 bytes for each token of its text, twice that while it
// grows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/speculation/ngram_drafter.h"
#include "core/speculation/ngram_followers.h"
#include "core/speculation/ngram_table.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

template <class Followers>
class NgramMap final : public NgramDrafter {
  public:
    /// REQUIRES: all lengths at least 1.
    NgramMap(NgramLengths lengths, std::int32_t n_slots);

    DraftType type() const override { return Followers::type; }
    std::int32_t own_max() const override { return lengths_.m; }

    void begin(SequenceId slot, std::span<const Token> tokens) override;
    void accepted(SequenceId slot, std::int32_t n_drafted, std::int32_t n_accepted, bool own) override;
    void reset(SequenceId slot) override;

  protected:
    void propose(const DraftRequest& request, std::vector<Token>& tokens) override;
    std::vector<SideChain> others(const DraftRequest& request) const override;

  private:
    struct Drafted {
        std::int32_t key = 0;
        std::int32_t value = 0;
        /// Tokens before anybody cut it.
        std::int32_t length = 0;
    };
    struct Slot {
        explicit Slot(NgramLengths lengths) : table(lengths.n), followers(lengths) {}

        /// The text as it was last seen; table and followers hold numbers of its positions.
        std::vector<Token> text;
        NgramTable table;
        Followers followers;
        /// The draft that `accepted` speaks of.
        std::optional<Drafted> last;
    };

    NgramLengths lengths_;
    std::vector<Slot> slots_;

    /// Takes over `tokens`, of which the first `n_kept` are known.
    void update(Slot& slot, std::span<const Token> tokens, std::size_t n_kept);
};

extern template class NgramMap<NewestFollower>;
extern template class NgramMap<CountedFollowers>;

using NgramMapK = NgramMap<NewestFollower>;
using NgramMapK4v = NgramMap<CountedFollowers>;

}  // namespace paddock
