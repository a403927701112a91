// Finds earlier n-grams of a text by hash (11 §6.2). Used by the n-gram maps, one for each slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace paddock {

/// Positions are entered in rising order and taken back from the end, after which the table is as if they had
/// never been entered. The text is the caller's; what is entered of it must not change. A bucket holds one
/// key, the first that came; positions of others are left out, so that no text makes a search long.
class NgramTable {
  public:
    static constexpr std::int32_t none = -1;

    /// Length of the keys in tokens, at least 1.
    explicit NgramTable(std::int32_t n);

    /// Number of the key that `pattern` (`n` tokens) is, or `none`.
    std::int32_t find(std::span<const Token> text, std::span<const Token> pattern) const;

    /// Enters the `n` tokens at every position from `next_position()` up to `last`, and tells
    /// `on_entry(key, position)` of each that has a key.
    template <class OnEntry>
    void enter_until(std::span<const Token> text, std::int64_t last, OnEntry on_entry);

    /// Takes back the positions from `first` on, newest first, and tells `on_removal(key)` of each that had
    /// one.
    template <class OnRemoval>
    void remove_from(std::int64_t first, OnRemoval on_removal);

    std::int64_t next_position() const { return next_; }

  private:
    struct Key {
        std::int32_t first_position = 0;
        std::uint32_t bucket = 0;
    };
    struct Entry {
        std::int32_t position = 0;
        std::int32_t key = 0;
    };

    std::size_t n_;
    /// Multiplier of a key's first token in its hash.
    std::uint32_t first_factor_;
    /// Numbers of keys; empty until the first entry.
    std::vector<std::int32_t> buckets_;
    /// In the order of their first position; the last is the first to go.
    std::vector<Key> keys_;
    std::vector<Entry> entries_;
    /// Position 0 is never entered (11 §6.1).
    std::int64_t next_ = 1;

    static std::uint32_t hash_of(std::span<const Token> key);
    /// Of the n-gram one further on.
    std::uint32_t rolled(std::uint32_t hash, Token left, Token entered) const;
    std::int32_t enter(std::span<const Token> text, std::int64_t position, std::uint32_t hash);
    void remove_last();
};

template <class OnEntry>
void NgramTable::enter_until(std::span<const Token> text, std::int64_t last, OnEntry on_entry) {
    if (next_ > last) {
        return;
    }
    std::uint32_t hash = hash_of(text.subspan(static_cast<std::size_t>(next_), n_));
    while (true) {
        const std::int32_t key = enter(text, next_, hash);
        if (key != none) {
            on_entry(key, static_cast<std::int32_t>(next_));
        }
        const auto left = static_cast<std::size_t>(next_++);
        if (next_ > last) {
            return;
        }
        hash = rolled(hash, text[left], text[left + n_]);
    }
}

template <class OnRemoval>
void NgramTable::remove_from(std::int64_t first, OnRemoval on_removal) {
    while (!entries_.empty() && entries_.back().position >= first) {
        on_removal(entries_.back().key);
        remove_last();
    }
    if (first < next_) {
        next_ = first < 1 ? 1 : first;
    }
}

}  // namespace paddock
