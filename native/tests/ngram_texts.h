// Texts and questions for the tests of n-gram drafters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/speculation/drafter.h"

namespace paddock {

using Tokens = std::vector<Token>;

inline Tokens joined(std::initializer_list<Tokens> parts) {
    Tokens all;
    for (const Tokens& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

/// `n` tokens that follow each other.
inline Tokens run(Token first, std::int32_t n) {
    Tokens tokens;
    for (std::int32_t i = 0; i < n; ++i) {
        tokens.push_back(first + i);
    }
    return tokens;
}

inline Tokens repeated(const Tokens& tokens, int times) {
    Tokens all;
    for (int i = 0; i < times; ++i) {
        all.insert(all.end(), tokens.begin(), tokens.end());
    }
    return all;
}

/// Random words of `n_kinds` tokens, so that the text repeats itself often but not always.
inline Tokens random_text(std::uint32_t seed, std::int32_t n, Token n_kinds) {
    std::mt19937 random(seed);
    Tokens tokens;
    for (std::int32_t i = 0; i < n; ++i) {
        tokens.push_back(static_cast<Token>(random() % static_cast<std::uint32_t>(n_kinds)));
    }
    return tokens;
}

/// Tokens at the limits of their type, in no order.
inline Tokens extreme_text(std::int32_t n) {
    constexpr Token lowest = std::numeric_limits<Token>::min();
    constexpr Token highest = std::numeric_limits<Token>::max();
    Tokens tokens = random_text(1, n, 5);
    for (Token& token : tokens) {
        token = Tokens{lowest, -1, 0, highest, lowest + 1}[static_cast<std::size_t>(token)];
    }
    return tokens;
}

/// For drafters with patterns of 3 and drafts of 5 tokens.
inline const Tokens key{1, 2, 3};

/// The key with `m` tokens from `first` on behind it.
inline Tokens keyed(Token first) { return joined({key, run(first, 5)}); }

inline constexpr std::int32_t no_limit = 1000;

/// What the drafter says after `text`, of which the last token is the pending one.
inline Tokens draft_after(Drafter& drafter, const Tokens& text, std::int32_t limit = no_limit,
                          SequenceId slot = 0) {
    const std::span<const Token> all = text;
    const DraftRequest request{
        .slot = slot, .tokens = all.first(all.size() - 1), .pending = text.back(), .limit = limit};
    return drafter.draft({&request, 1}).front().tokens;
}

/// The same of a drafter that is told of the text first.
template <class AnyDrafter>
Tokens fresh_draft(AnyDrafter drafter, const Tokens& text, std::int32_t limit = no_limit) {
    drafter.begin(0, std::span(text).first(text.size() - 1));
    return draft_after(drafter, text, limit);
}

}  // namespace paddock
