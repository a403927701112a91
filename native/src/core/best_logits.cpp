#include "core/best_logits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace paddock {

namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();
/// Logits that are compared as one, and how many of them go through a vector unit side by side.
constexpr std::size_t block_size = 64;
constexpr std::size_t lane_count = 16;

/// Skips values that aren't numbers. Written so that compilers make vector instructions of it.
float maximum_of_block(const float* values) {
    std::array<float, lane_count> lanes;
    lanes.fill(impossible);
    for (std::size_t i = 0; i < block_size; i += lane_count) {
        for (std::size_t lane = 0; lane < lane_count; ++lane) {
            const float value = values[i + lane];
            lanes[lane] = value > lanes[lane] ? value : lanes[lane];
        }
    }
    return *std::ranges::max_element(lanes);
}

float maximum_of(std::span<const float> values) {
    float greatest = impossible;
    for (const float value : values) {
        greatest = value > greatest ? value : greatest;
    }
    return greatest;
}

}  // namespace

std::optional<Token> BestLogits::greatest(std::span<const float> logits) {
    measure_blocks(logits);
    const float most = maximum_of(block_maxima_);
    if (!std::isfinite(most)) {
        return std::nullopt;
    }
    std::optional<Token> token;
    for (std::size_t block = 0; block < block_maxima_.size(); ++block) {
        if (block_maxima_[block] != most) {
            continue;
        }
        const std::size_t end = std::min((block + 1) * block_size, logits.size());
        for (std::size_t i = block * block_size; i < end; ++i) {
            if (logits[i] != most) {
                continue;
            }
            if (token.has_value()) {
                return std::nullopt;
            }
            token = static_cast<Token>(i);
        }
    }
    return token;
}

bool BestLogits::find(std::span<const float> logits, std::size_t n) {
    found_.clear();
    if (n == 0 || n > logits.size() / block_size) {
        return false;
    }
    measure_blocks(logits);

    // At least `n` blocks hold a logit that great, so the best `n` logits are no smaller.
    scratch_ = block_maxima_;
    const auto nth = scratch_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::ranges::nth_element(scratch_, nth, std::greater{});
    least_ = *nth;
    if (!std::isfinite(least_) || !std::isfinite(maximum_of(block_maxima_))) {
        return false;
    }
    for (std::size_t block = 0; block < block_maxima_.size(); ++block) {
        if (block_maxima_[block] < least_) {
            continue;
        }
        const std::size_t end = std::min((block + 1) * block_size, logits.size());
        for (std::size_t i = block * block_size; i < end; ++i) {
            if (logits[i] >= least_) {
                found_.push_back({.token = static_cast<Token>(i), .logit = logits[i]});
            }
        }
    }
    return true;
}

void BestLogits::measure_blocks(std::span<const float> logits) {
    block_maxima_.clear();
    const std::size_t n_whole = logits.size() / block_size;
    for (std::size_t i = 0; i < n_whole; ++i) {
        block_maxima_.push_back(maximum_of_block(logits.data() + i * block_size));
    }
    const auto rest = logits.subspan(n_whole * block_size);
    if (!rest.empty()) {
        block_maxima_.push_back(maximum_of(rest));
    }
}

}  // namespace paddock
