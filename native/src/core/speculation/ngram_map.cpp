#include "core/speculation/ngram_map.h"

#include <cmath>

namespace paddock {

template <class Followers>
NgramMap<Followers>::NgramMap(NgramLengths lengths, std::int32_t n_slots)
    : lengths_(lengths), slots_(static_cast<std::size_t>(n_slots), Slot(lengths)) {}

template <class Followers>
void NgramMap<Followers>::begin(SequenceId slot, std::span<const Token> tokens) {
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    update(state, tokens, common_length(state.text, tokens));
}

template <class Followers>
void NgramMap<Followers>::update(Slot& slot, std::span<const Token> tokens, std::size_t n_kept) {
    // Only matches with a whole value behind them are entered.
    const std::int64_t span = std::int64_t{lengths_.n} + lengths_.m;
    slot.last.reset();
    if (n_kept < slot.text.size()) {
        slot.table.remove_from(static_cast<std::int64_t>(n_kept) - span,
                               [&](std::int32_t key) { slot.followers.remove_last(key); });
        slot.text.resize(n_kept);
    }
    slot.text.insert(slot.text.end(), tokens.begin() + static_cast<std::ptrdiff_t>(n_kept), tokens.end());
    slot.table.enter_until(
        slot.text, static_cast<std::int64_t>(tokens.size()) - span,
        [&](std::int32_t key, std::int32_t position) { slot.followers.add(slot.text, key, position); });
}

template <class Followers>
void NgramMap<Followers>::propose(const DraftRequest& request, std::vector<Token>& tokens) {
    Slot& slot = slots_[static_cast<std::size_t>(request.slot)];
    update(slot, request.tokens, unchanged_length(slot.text, request.tokens));
    const auto n = static_cast<std::size_t>(lengths_.n);
    const auto m = static_cast<std::size_t>(lengths_.m);
    if (request.tokens.size() < 2 * n + m) {
        return;
    }
    const auto tail = request.tokens.last(n - 1);
    std::vector<Token> pattern(tail.begin(), tail.end());
    pattern.push_back(request.pending);
    const std::int32_t key = slot.table.find(slot.text, pattern);
    if (key == NgramTable::none) {
        return;
    }
    if (const auto choice = slot.followers.choose(key)) {
        const auto first = slot.text.begin() + choice->start;
        tokens.assign(first, first + choice->length);
        slot.last = Drafted{.key = key, .value = choice->value, .length = choice->length};
    }
}

template <class Followers>
std::vector<SideChain> NgramMap<Followers>::others(const DraftRequest& request) const {
    std::vector<SideChain> chains;
    if constexpr (requires(Followers followers) { followers.others(0, 0); }) {
        const Slot& slot = slots_[static_cast<std::size_t>(request.slot)];
        if (slot.last) {
            for (const NgramChoice& choice : slot.followers.others(slot.last->key, slot.last->value)) {
                const auto first = slot.text.begin() + choice.start;
                chains.push_back({.hang_depth = 0,
                                  .tokens = {first, first + choice.length},
                                  .score = std::log(choice.share)});
            }
        }
    }
    return chains;
}

template <class Followers>
void NgramMap<Followers>::accepted(SequenceId slot, std::int32_t n_drafted, std::int32_t n_accepted,
                                   bool own) {
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    // Right as far as it was looked at: how much further, nobody knows.
    const bool is_open = state.last && n_accepted >= n_drafted && n_drafted < state.last->length;
    if (own && state.last && !is_open) {
        state.followers.accepted(state.last->key, state.last->value, n_accepted);
    }
    state.last.reset();
}

template <class Followers>
void NgramMap<Followers>::reset(SequenceId slot) {
    slots_[static_cast<std::size_t>(slot)] = Slot(lengths_);
}

template class NgramMap<NewestFollower>;
template class NgramMap<CountedFollowers>;

}  // namespace paddock
