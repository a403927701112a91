#include "llama/sampler_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace paddock {
namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();
/// What libllama notes of so many candidates stays in the processor's caches, and what it does once a call
/// doesn't count yet.
constexpr std::size_t restricted_at_once = 8192;
constexpr Micros longest_restriction = 5'000'000;

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

bool Candidates::fill_best(BestLogits& best, std::span<const float> logits, std::size_t n_best,
                           std::span<const Token> touched) {
    // At worst every touched token is among the best and falls out of them.
    if (!best.find(logits, n_best + touched.size())) return false;
    reserve(best.found().size() + touched.size());
    for (const ScoredToken& one : best.found()) {
        data_[array_.size++] = {.id = one.token, .logit = one.logit, .p = 0.0F};
    }
    add_touched(logits, best.least(), touched);
    return !has_equal_logits();
}

/// Those that aren't among the best.
void Candidates::add_touched(std::span<const float> logits, float least, std::span<const Token> touched) {
    const std::size_t n_great = array_.size;
    std::size_t n = n_great;
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
    const Micros start = now_us();
    for (std::size_t begin = 0; begin < array_.size; begin += restricted_at_once) {
        if (now_us() - start > longest_restriction) {
            throw std::invalid_argument(
                "grammar: it took longer than 5 seconds to look for one token; write "
                "fewer alternatives and smaller character classes");
        }
        llama_token_data_array part{.data = array_.data + begin,
                                    .size = std::min(restricted_at_once, array_.size - begin),
                                    .selected = -1,
                                    .sorted = false};
        llama_sampler_apply(filter, &part);
    }
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
