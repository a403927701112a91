#include "llama/sampler_candidates.h"

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
    for (const float value : values) greatest = value > greatest ? value : greatest;
    return greatest;
}

}  // namespace

void Candidates::reserve(std::size_t n_vocab) {
    if (data_.size() < n_vocab) data_.resize(n_vocab);
    array_ = {.data = data_.data(), .size = 0, .selected = -1, .sorted = false};
}

bool Candidates::fill(std::span<const float> logits) {
    reserve(logits.size());
    bool any = false;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const bool is_usable = std::isfinite(logits[i]);
        data_[i] = {.id = static_cast<Token>(i), .logit = is_usable ? logits[i] : impossible, .p = 0.0F};
        any |= is_usable;
    }
    array_.size = logits.size();
    return any;
}

bool Candidates::fill_best(std::span<const float> logits, std::size_t n_best,
                           std::span<const Token> touched) {
    // At worst every touched token is among the best and falls out of them.
    const std::size_t n_wanted = n_best + touched.size();
    if (n_wanted == 0 || n_wanted > logits.size() / block_size) return false;
    measure_blocks(logits);

    // At least `n_wanted` blocks hold a logit that great, so the best `n_wanted` logits are no smaller.
    scratch_ = block_maxima_;
    const auto nth = scratch_.begin() + static_cast<std::ptrdiff_t>(n_wanted - 1);
    std::ranges::nth_element(scratch_, nth, std::greater{});
    const float least = *nth;
    if (!std::isfinite(least) || !std::isfinite(maximum_of(block_maxima_))) return false;

    collect(logits, least, touched);
    return !has_equal_logits();
}

void Candidates::measure_blocks(std::span<const float> logits) {
    block_maxima_.clear();
    const std::size_t n_whole = logits.size() / block_size;
    for (std::size_t i = 0; i < n_whole; ++i) {
        block_maxima_.push_back(maximum_of_block(logits.data() + i * block_size));
    }
    const auto rest = logits.subspan(n_whole * block_size);
    if (!rest.empty()) block_maxima_.push_back(maximum_of(rest));
}

void Candidates::collect(std::span<const float> logits, float least, std::span<const Token> touched) {
    reserve(logits.size());
    std::size_t n = 0;
    for (std::size_t block = 0; block < block_maxima_.size(); ++block) {
        if (block_maxima_[block] < least) continue;
        const std::size_t end = std::min((block + 1) * block_size, logits.size());
        for (std::size_t i = block * block_size; i < end; ++i) {
            if (logits[i] >= least) data_[n++] = {.id = static_cast<Token>(i), .logit = logits[i], .p = 0.0F};
        }
    }
    const std::size_t n_great = n;
    for (const Token token : touched) {
        const float logit = logits[static_cast<std::size_t>(token)];
        const bool is_new = std::none_of(data_.begin() + static_cast<std::ptrdiff_t>(n_great),
                                         data_.begin() + static_cast<std::ptrdiff_t>(n),
                                         [&](const llama_token_data& other) { return other.id == token; });
        if (std::isfinite(logit) && logit < least && is_new)
            data_[n++] = {.id = token, .logit = logit, .p = 0.0F};
    }
    array_.size = n;
}

bool Candidates::has_equal_logits() {
    scratch_.clear();
    for (std::size_t i = 0; i < array_.size; ++i) scratch_.push_back(data_[i].logit);
    std::ranges::sort(scratch_);
    return std::ranges::adjacent_find(scratch_) != scratch_.end();
}

void Candidates::set_only(Token token) {
    reserve(1);
    data_[0] = {.id = token, .logit = 0.0F, .p = 1.0F};
    array_.size = 1;
    array_.selected = 0;
}

bool Candidates::restrict_by(llama_sampler* filter) {
    llama_sampler_apply(filter, &array_);
    return std::any_of(array_.data, array_.data + array_.size,
                       [](const llama_token_data& candidate) { return candidate.logit > impossible; });
}

std::optional<Token> Candidates::choose(llama_sampler* chain) {
    llama_sampler_apply(chain, &array_);
    const auto selected = static_cast<std::size_t>(array_.selected);
    if (array_.selected >= 0 && selected < array_.size && std::isfinite(array_.data[selected].logit)) {
        return array_.data[selected].id;
    }
    // Parameters at the ends of their ranges overflow the softmax. The limit that they approach is the
    // greatest logit.
    const llama_token_data* best = nullptr;
    for (std::size_t i = 0; i < array_.size; ++i) {
        if (array_.data[i].logit > (best == nullptr ? impossible : best->logit)) best = &array_.data[i];
    }
    if (best == nullptr) return std::nullopt;
    array_.selected = best - array_.data;
    return best->id;
}

std::vector<ScoredToken> Candidates::left() const {
    std::vector<ScoredToken> tokens;
    tokens.reserve(array_.size);
    for (std::size_t i = 0; i < array_.size; ++i) tokens.push_back({array_.data[i].id, array_.data[i].logit});
    return tokens;
}

}  // namespace paddock
