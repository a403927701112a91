#include "core/probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace paddock {
namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();

/// Broken values must neither win nor poison the sum.
float usable(float logit) { return std::isfinite(logit) ? logit : impossible; }

/// `token_at` and `logit_at` name candidate i of `count`.
template <typename TokenAt, typename LogitAt>
TokenRecord record_over(std::size_t count, const TokenAt& token_at, const LogitAt& logit_at, Token chosen,
                        std::int32_t n_top) {
    float greatest = impossible;
    for (std::size_t i = 0; i < count; ++i) greatest = std::max(greatest, usable(logit_at(i)));

    TokenRecord record;
    record.chosen.token = chosen;
    if (count == 0) return record;

    double sum = 0.0;
    if (greatest != impossible) {
        for (std::size_t i = 0; i < count; ++i) sum += std::exp(usable(logit_at(i)) - greatest);
    }
    const auto probability = [&](std::size_t i) {
        return sum > 0.0 ? static_cast<float>(std::exp(usable(logit_at(i)) - greatest) / sum) : 0.0F;
    };

    for (std::size_t i = 0; i < count; ++i) {
        if (token_at(i) == chosen) {
            record.chosen.probability = probability(i);
            break;
        }
    }

    const std::size_t n_kept = std::min(count, static_cast<std::size_t>(std::max(n_top, 0)));
    if (n_kept == 0) return record;
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    const auto goes_first = [&](std::size_t a, std::size_t b) {
        const float logit_a = usable(logit_at(a));
        const float logit_b = usable(logit_at(b));
        return logit_a != logit_b ? logit_a > logit_b : token_at(a) < token_at(b);
    };
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(n_kept), goes_first);
    record.top.reserve(n_kept);
    for (std::size_t i = 0; i < n_kept; ++i) {
        record.top.push_back(
            {.token = token_at(order[i]), .piece = {}, .probability = probability(order[i])});
    }
    return record;
}

}  // namespace

TokenRecord record_of(std::span<const float> logits, Token chosen, std::int32_t n_top) {
    const auto token_at = [](std::size_t i) { return static_cast<Token>(i); };
    return record_over(logits.size(), token_at, [&](std::size_t i) { return logits[i]; }, chosen, n_top);
}

TokenRecord record_of(std::span<const ScoredToken> candidates, Token chosen, std::int32_t n_top) {
    const auto token_at = [&](std::size_t i) { return candidates[i].token; };
    return record_over(
        candidates.size(), token_at, [&](std::size_t i) { return candidates[i].logit; }, chosen, n_top);
}

std::vector<TokenChance> chances_of(std::span<const ScoredToken> candidates) {
    float greatest = impossible;
    for (const ScoredToken& candidate : candidates) greatest = std::max(greatest, usable(candidate.logit));
    std::vector<TokenChance> chances;
    if (greatest == impossible) return chances;
    double sum = 0.0;
    chances.reserve(candidates.size());
    for (const ScoredToken& candidate : candidates) {
        const double weight = std::exp(static_cast<double>(usable(candidate.logit)) - greatest);
        if (weight <= 0.0) continue;
        chances.push_back({candidate.token, weight});
        sum += weight;
    }
    for (TokenChance& chance : chances) chance.probability /= sum;
    return chances;
}

}  // namespace paddock
