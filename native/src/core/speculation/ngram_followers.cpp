#include "core/speculation/ngram_followers.h"

#include <algorithm>

namespace paddock {

namespace {

/// Larger counts of a value are taken as this (11 §6.3).
constexpr std::int32_t max_count = 16380;
/// A key that failed still drafts this much, or it could never recover (11 §6.2).
constexpr std::int64_t least_length = 2;

/// `n_accepted`: of the last draft; negative: there was none.
std::int32_t draft_length(std::int32_t m, std::int32_t n_accepted) {
    if (n_accepted < 0) {
        return m;
    }
    const std::int64_t grown = std::max(least_length, std::int64_t{2} * n_accepted);
    return static_cast<std::int32_t>(std::min<std::int64_t>(m, grown));
}

}  // namespace

void NewestFollower::add(std::span<const Token> /*text*/, std::int32_t key, std::int32_t position) {
    if (static_cast<std::size_t>(key) == keys_.size()) {
        keys_.emplace_back();
    }
    Key& found = keys_[static_cast<std::size_t>(key)];
    before_.push_back(found.newest);
    found.newest = position;
    ++found.hits;
}

void NewestFollower::remove_last(std::int32_t key) {
    Key& found = keys_[static_cast<std::size_t>(key)];
    found.newest = before_.back();
    before_.pop_back();
    if (--found.hits == 0) {
        keys_.pop_back();
    }
}

std::optional<NgramChoice> NewestFollower::choose(std::int32_t key) const {
    const Key& found = keys_[static_cast<std::size_t>(key)];
    if (found.hits < lengths_.min_hits) {
        return std::nullopt;
    }
    return NgramChoice{.start = found.newest + lengths_.n,
                       .length = draft_length(lengths_.m, found.n_accepted)};
}

void NewestFollower::accepted(std::int32_t key, std::int32_t /*value*/, std::int32_t n_accepted) {
    keys_[static_cast<std::size_t>(key)].n_accepted = n_accepted;
}

std::uint8_t CountedFollowers::value_at(std::span<const Token> text, Key& key, std::int32_t start) const {
    const auto m = static_cast<std::size_t>(lengths_.m);
    const auto wanted = text.subspan(static_cast<std::size_t>(start), m);
    for (std::uint8_t i = 0; i < key.n_values; ++i) {
        const auto first = static_cast<std::size_t>(key.values[i].start);
        if (std::equal(wanted.begin(), wanted.end(), text.subspan(first, m).begin())) {
            return i;
        }
    }
    if (key.n_values == max_values) {
        return max_values;
    }
    key.values[key.n_values] = {.start = start};
    return key.n_values++;
}

void CountedFollowers::add(std::span<const Token> text, std::int32_t key, std::int32_t position) {
    if (static_cast<std::size_t>(key) == keys_.size()) {
        keys_.emplace_back();
    }
    Key& found = keys_[static_cast<std::size_t>(key)];
    ++found.hits;
    const std::uint8_t value = value_at(text, found, position + lengths_.n);
    value_of_entry_.push_back(value);
    if (value < max_values) {
        ++found.values[value].count;
    }
}

void CountedFollowers::remove_last(std::int32_t key) {
    Key& found = keys_[static_cast<std::size_t>(key)];
    const std::uint8_t value = value_of_entry_.back();
    value_of_entry_.pop_back();
    if (value < max_values && --found.values[value].count == 0) {
        --found.n_values;
    }
    if (--found.hits == 0) {
        keys_.pop_back();
    }
}

std::optional<NgramChoice> CountedFollowers::choose(std::int32_t key) const {
    const Key& found = keys_[static_cast<std::size_t>(key)];
    if (found.hits < lengths_.min_hits) {
        return std::nullopt;
    }
    std::int32_t best = 0;
    std::int32_t best_count = 0;
    std::int32_t sum = 0;
    for (std::int32_t i = 0; i < found.n_values; ++i) {
        const std::int32_t count = std::min(found.values[static_cast<std::size_t>(i)].count, max_count);
        sum += count;
        if (count > best_count) {
            best = i;
            best_count = count;
        }
    }
    if (best_count < 2 * (sum - best_count)) {
        return std::nullopt;
    }
    const Value& value = found.values[static_cast<std::size_t>(best)];
    return NgramChoice{
        .start = value.start, .length = draft_length(lengths_.m, value.n_accepted), .value = best};
}

std::vector<NgramChoice> CountedFollowers::others(std::int32_t key, std::int32_t chosen) const {
    const Key& found = keys_[static_cast<std::size_t>(key)];
    double sum = 0.0;
    for (std::int32_t i = 0; i < found.n_values; ++i) {
        sum += found.values[static_cast<std::size_t>(i)].count;
    }
    std::vector<NgramChoice> choices;
    for (std::int32_t i = 0; i < found.n_values; ++i) {
        const Value& value = found.values[static_cast<std::size_t>(i)];
        if (i != chosen) {
            choices.push_back({.start = value.start,
                               .length = draft_length(lengths_.m, value.n_accepted),
                               .value = i,
                               .share = value.count / sum});
        }
    }
    return choices;
}

void CountedFollowers::accepted(std::int32_t key, std::int32_t value, std::int32_t n_accepted) {
    keys_[static_cast<std::size_t>(key)].values[static_cast<std::size_t>(value)].n_accepted = n_accepted;
}

}  // namespace paddock
