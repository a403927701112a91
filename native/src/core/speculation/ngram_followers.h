// What followed the keys of an n-gram map, and how well it did as a draft (11 §6.2, 6.3). Parts of
// `NgramMap`: `add` and `remove_last` follow the entries of its `NgramTable`, so that both hold the same
// keys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/speculation/draft_type.h"
#include "core/speculation/speculation_params.h"
#include "core/types.h"

namespace paddock {

/// Tokens to draft: `length` of them from `start` in the text; `value` is for `accepted`.
struct NgramChoice {
    std::int32_t start = 0;
    std::int32_t length = 0;
    std::int32_t value = 0;
    /// Of the key's occurrences that are counted, those with this value.
    double share = 1.0;
};

/// Of each key the newest occurrence.
class NewestFollower {
  public:
    static constexpr DraftType type = DraftType::ngram_map_k;

    explicit NewestFollower(NgramLengths lengths) : lengths_(lengths) {}

    void add(std::span<const Token> text, std::int32_t key, std::int32_t position);
    void remove_last(std::int32_t key);
    std::optional<NgramChoice> choose(std::int32_t key) const;
    void accepted(std::int32_t key, std::int32_t value, std::int32_t n_accepted);

  private:
    struct Key {
        std::int32_t newest = 0;
        std::int32_t hits = 0;
        std::int32_t n_accepted = -1;
    };
    NgramLengths lengths_;
    std::vector<Key> keys_;
    /// For each entry the position that was its key's newest before.
    std::vector<std::int32_t> before_;
};

/// Of each key up to four different values of `m` tokens, counted.
class CountedFollowers {
  public:
    static constexpr DraftType type = DraftType::ngram_map_k4v;

    explicit CountedFollowers(NgramLengths lengths) : lengths_(lengths) {}

    void add(std::span<const Token> text, std::int32_t key, std::int32_t position);
    void remove_last(std::int32_t key);
    std::optional<NgramChoice> choose(std::int32_t key) const;
    /// The key's values but for one, which `choose` gave.
    std::vector<NgramChoice> others(std::int32_t key, std::int32_t chosen) const;
    void accepted(std::int32_t key, std::int32_t value, std::int32_t n_accepted);

  private:
    static constexpr std::uint8_t max_values = 4;

    struct Value {
        std::int32_t start = 0;
        std::int32_t count = 0;
        std::int32_t n_accepted = -1;
    };
    struct Key {
        std::array<Value, max_values> values{};
        std::int32_t hits = 0;
        /// The first `n_values` are in use, in the order in which they came.
        std::uint8_t n_values = 0;
    };
    NgramLengths lengths_;
    std::vector<Key> keys_;
    /// For each entry the value that it counts for; `max_values`: a fifth one.
    std::vector<std::uint8_t> value_of_entry_;

    std::uint8_t value_at(std::span<const Token> text, Key& key, std::int32_t start) const;
};

}  // namespace paddock
