#include "core/speculation/ngram_table.h"

#include <algorithm>

namespace paddock {

namespace {

/// Both of 11 §6.2.
constexpr std::uint32_t hash_factor = 2654435761U;
constexpr std::uint32_t n_buckets = 1U << 18U;

}  // namespace

NgramTable::NgramTable(std::int32_t n) : n_(static_cast<std::size_t>(n)), first_factor_(1) {
    for (std::size_t i = 1; i < n_; ++i) {
        first_factor_ *= hash_factor;
    }
}

std::uint32_t NgramTable::hash_of(std::span<const Token> key) {
    std::uint32_t hash = 0;
    for (const Token token : key) {
        hash = hash * hash_factor + static_cast<std::uint32_t>(token);
    }
    return hash;
}

std::uint32_t NgramTable::rolled(std::uint32_t hash, Token left, Token entered) const {
    const std::uint32_t rest = hash - static_cast<std::uint32_t>(left) * first_factor_;
    return rest * hash_factor + static_cast<std::uint32_t>(entered);
}

std::int32_t NgramTable::find(std::span<const Token> text, std::span<const Token> pattern) const {
    if (buckets_.empty()) {
        return none;
    }
    const std::int32_t key = buckets_[hash_of(pattern) % n_buckets];
    if (key == none) {
        return none;
    }
    const auto first = static_cast<std::size_t>(keys_[static_cast<std::size_t>(key)].first_position);
    return std::equal(pattern.begin(), pattern.end(), text.subspan(first, n_).begin()) ? key : none;
}

std::int32_t NgramTable::enter(std::span<const Token> text, std::int64_t position, std::uint32_t hash) {
    if (buckets_.empty()) {
        buckets_.assign(n_buckets, none);
    }
    const std::uint32_t bucket = hash % n_buckets;
    std::int32_t key = buckets_[bucket];
    if (key == none) {
        key = static_cast<std::int32_t>(keys_.size());
        keys_.push_back({.first_position = static_cast<std::int32_t>(position), .bucket = bucket});
        buckets_[bucket] = key;
    } else {
        const auto first = static_cast<std::size_t>(keys_[static_cast<std::size_t>(key)].first_position);
        const auto known = text.subspan(first, n_);
        if (!std::equal(known.begin(), known.end(),
                        text.subspan(static_cast<std::size_t>(position), n_).begin())) {
            return none;
        }
    }
    entries_.push_back({.position = static_cast<std::int32_t>(position), .key = key});
    return key;
}

void NgramTable::remove_last() {
    const Entry entry = entries_.back();
    entries_.pop_back();
    if (keys_.back().first_position == entry.position) {
        buckets_[keys_.back().bucket] = none;
        keys_.pop_back();
    }
}

}  // namespace paddock
