#include "core/speculation/draft_candidates.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace paddock {
namespace {

constexpr std::size_t max_candidates = 10;

/// Logarithm of the sum of exp((logit - greatest) / temperature).
double log_sum(std::span<const RankedLogit> best, double temperature) {
    double sum = 0.0;
    for (const RankedLogit& ranked : best) {
        sum += std::exp((static_cast<double>(ranked.logit) - best.front().logit) / temperature);
    }
    return std::log(sum);
}

}  // namespace

std::vector<RankedLogit> best_logits(std::span<const float> logits) {
    std::array<RankedLogit, max_candidates> best;
    std::size_t n_best = 0;
    // Nearly every logit of a row fails this one comparison, as NaN and negative infinity always do.
    float bar = std::numeric_limits<float>::lowest();
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const float logit = logits[i];
        if (!(logit > bar) || std::isinf(logit)) {
            continue;
        }
        std::size_t place = n_best < max_candidates ? n_best++ : max_candidates - 1;
        for (; place > 0 && best[place - 1].logit < logit; --place) {
            best[place] = best[place - 1];
        }
        best[place] = {.token = static_cast<Token>(i), .logit = logit};
        if (n_best == max_candidates) {
            bar = best.back().logit;
        }
    }
    return {best.begin(), best.begin() + static_cast<std::ptrdiff_t>(n_best)};
}

float top_probability(std::span<const RankedLogit> best) {
    return static_cast<float>(std::exp(-log_sum(best, 1.0)));
}

std::vector<DraftCandidate> softmax(std::span<const RankedLogit> best, float temperature) {
    const double total = log_sum(best, temperature);
    std::vector<DraftCandidate> candidates;
    candidates.reserve(best.size());
    for (const RankedLogit& ranked : best) {
        const double scaled = (static_cast<double>(ranked.logit) - best.front().logit) / temperature;
        candidates.push_back({.token = ranked.token, .log_probability = static_cast<float>(scaled - total)});
    }
    return candidates;
}

Token drawn(std::span<const DraftCandidate> candidates, double unit) {
    double passed = 0.0;
    for (const DraftCandidate& candidate : candidates) {
        passed += std::exp(static_cast<double>(candidate.log_probability));
        if (unit < passed) {
            return candidate.token;
        }
    }
    // Rounding may leave the sum a little below 1; the first is the likeliest.
    return candidates.front().token;
}

}  // namespace paddock
