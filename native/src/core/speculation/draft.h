// Tokens that a drafter proposes (11 §4.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/speculation/draft_tree.h"
#include "core/speculation/draft_type.h"
#include "core/types.h"

namespace paddock {

struct DraftCandidate {
    Token token = 0;
    /// Natural logarithm; those of one position sum to 1 as probabilities.
    float log_probability = 0.0F;
};

struct Draft {
    DraftType type = DraftType::draft_simple;
    std::vector<Token> tokens;
    /// For each token the candidates that it was drawn from; empty for a drafter that draws nothing.
    std::vector<std::vector<DraftCandidate>> candidates;
    /// Where `tokens` might be wrong, and what it could be instead; only when asked for.
    std::vector<SideChain> side_chains{};
    /// Pending token, `tokens` and the side chains that are verified; empty: `tokens` alone are.
    DraftTree tree{};
    /// Sequence of the tree's first side chain; the others follow it.
    SequenceId first_branch = 0;

    std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }
    bool empty() const { return tokens.empty(); }
    /// Drafted tokens that get a row: those of side chains, too.
    std::int32_t n_verified() const { return tree.empty() ? size() : tree.size() - 1; }
    /// Drops what is longer than `limit` (11 §4.4).
    void cut(std::int32_t limit) {
        const auto kept = static_cast<std::size_t>(limit);
        if (tokens.size() > kept) {
            tokens.resize(kept);
        }
        if (candidates.size() > kept) {
            candidates.resize(kept);
        }
    }
};

struct DraftRequest {
    SequenceId slot = 0;
    /// What the slot's memory holds, and the token that follows it.
    std::span<const Token> tokens;
    Token pending = 0;
    /// Most and least tokens wanted.
    std::int32_t limit = 0;
    std::int32_t n_min = 0;
    float p_min = 0.0F;
    /// 0: the likeliest tokens, without candidates.
    float temperature = 0.0F;
    /// Start of the random stream that draws are made from; a new one for each cycle.
    std::uint64_t seed = 0;
    /// Likeliest tokens of each position that may become side chains, the drafted one among them; 1: no side
    /// chains are wanted.
    std::int32_t n_ranks = 1;
    /// Least probability of a side chain's first token.
    float p_split = 0.0F;
};

}  // namespace paddock
