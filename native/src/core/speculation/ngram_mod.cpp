#include "core/speculation/ngram_mod.h"

#include <algorithm>

namespace paddock {

namespace {

// Numbers of 11 §6.5.
constexpr std::uint64_t hash_factor = 6364136223846793005ULL;
constexpr std::size_t table_size = std::size_t{4} << 20U;
constexpr std::size_t history_step = 32;
constexpr std::size_t max_used = table_size / 4;
constexpr std::int32_t max_poor_drafts = 5;

constexpr Token nothing = -1;

bool is_poor(std::int32_t n_drafted, std::int32_t n_accepted) {
    return std::int64_t{4} * n_accepted < n_drafted;  // less than 0.25
}

std::uint64_t number_of(Token token) { return static_cast<std::uint64_t>(std::int64_t{token}); }

std::uint64_t hash_of(std::span<const Token> pattern) {
    std::uint64_t hash = 0;
    for (const Token token : pattern) {
        hash = hash * hash_factor + number_of(token);
    }
    return hash;
}

}  // namespace

NgramMod::NgramMod(NgramModLengths lengths, std::int32_t n_slots)
    : lengths_(lengths), followers_(table_size, nothing), slots_(static_cast<std::size_t>(n_slots)) {
    for (std::int32_t i = 1; i < lengths_.match; ++i) {
        first_factor_ *= hash_factor;
    }
}

std::uint64_t NgramMod::rolled(std::uint64_t hash, Token left, Token entered) const {
    return (hash - number_of(left) * first_factor_) * hash_factor + number_of(entered);
}

void NgramMod::clear() {
    std::fill(followers_.begin(), followers_.end(), nothing);
    n_used_ = 0;
    ++generation_;
}

void NgramMod::add(Slot& slot, std::span<const Token> text, std::size_t step) {
    const auto n = static_cast<std::size_t>(lengths_.match);
    const std::size_t n_ngrams = text.size() > n ? text.size() - n : 0;
    // After a cut the text may go on in another way; what it was stays a fair guess.
    slot.n_added = slot.generation == generation_ ? std::min(slot.n_added, n_ngrams) : 0;
    slot.generation = generation_;
    if (n_ngrams - slot.n_added < step) {
        return;
    }
    std::uint64_t hash = hash_of(text.subspan(slot.n_added, n));
    for (std::size_t i = slot.n_added; i < n_ngrams; ++i) {
        const Token follower = text[i + n];
        if (follower >= 0) {
            Token& entry = followers_[hash % table_size];
            n_used_ += entry == nothing ? 1 : 0;
            entry = follower;
        }
        hash = rolled(hash, text[i], follower);
    }
    slot.n_added = n_ngrams;
}

void NgramMod::begin(SequenceId slot, std::span<const Token> tokens) {
    if (n_used_ > max_used) {
        clear();
    }
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    state.n_added = 0;
    add(state, tokens, 1);
}

void NgramMod::propose(const DraftRequest& request, std::vector<Token>& tokens) {
    const auto n = static_cast<std::size_t>(lengths_.match);
    const std::int32_t longest = std::min(lengths_.max, request.limit);
    add(slots_[static_cast<std::size_t>(request.slot)], request.tokens, history_step);
    if (longest < lengths_.min || request.tokens.size() + 1 < n) {
        return;
    }
    const auto tail = request.tokens.last(n - 1);
    std::vector<Token> text(tail.begin(), tail.end());
    text.push_back(request.pending);
    std::uint64_t hash = hash_of(text);
    for (std::int32_t i = 0; i < longest; ++i) {
        const Token next = followers_[hash % table_size];
        if (next == nothing) {
            break;
        }
        hash = rolled(hash, text[static_cast<std::size_t>(i)], next);
        text.push_back(next);
    }
    if (text.size() - n >= static_cast<std::size_t>(lengths_.min)) {
        tokens.assign(text.begin() + static_cast<std::ptrdiff_t>(n), text.end());
    }
}

void NgramMod::accepted(SequenceId slot, std::int32_t n_drafted, std::int32_t n_accepted, bool own) {
    if (!own || n_drafted <= 0) {
        return;
    }
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    state.n_poor = is_poor(n_drafted, n_accepted) ? state.n_poor + 1 : 0;
    if (state.n_poor >= max_poor_drafts) {
        state.n_poor = 0;
        clear();
    }
}

void NgramMod::reset(SequenceId slot) { slots_[static_cast<std::size_t>(slot)] = {}; }

}  // namespace paddock
