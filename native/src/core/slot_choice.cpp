#include "core/slot_choice.h"

#include <algorithm>

#include "core/prompt_reuse.h"

namespace paddock {

namespace {

/// Less than this share of the slot's prompt would stay: it is worth saving first (10 §6.3).
constexpr float exchange_below = 0.5F;
/// Least share of both texts that a request has in common with the slot that it continues (10 §6.5).
constexpr float least_common = 0.5F;

float share(std::int32_t part, std::size_t whole) {
    return whole == 0 ? 0.0F : static_cast<float>(part) / static_cast<float>(whole);
}

/// What the slot's memory is worth to the request.
SlotChoice assess(const SlotCandidate& slot, std::span<const Token> wanted) {
    const std::int32_t common = slot.keeps_cache ? common_prefix(slot.cached, wanted) : 0;
    SlotChoice choice{.id = slot.id,
                      .similarity = share(common, wanted.size()),
                      .f_keep = share(common, slot.cached.size())};
    choice.exchange = choice.f_keep < exchange_below;
    choice.by_similarity = true;
    return choice;
}

SlotChoice most_similar(std::span<const SlotCandidate> slots, std::span<const Token> wanted,
                        float threshold) {
    SlotChoice best;
    for (const SlotCandidate& slot : slots) {
        if (!slot.idle || slot.cached.empty()) {
            continue;
        }
        const SlotChoice choice = assess(slot, wanted);
        if (choice.similarity > threshold && choice.similarity > best.similarity) {
            best = choice;
        }
    }
    return best;
}

bool goes_first(const SlotCandidate& a, const SlotCandidate& b) {
    if (a.can_speculate != b.can_speculate) {
        return a.can_speculate;
    }
    return a.last_used < b.last_used;
}

SlotChoice least_recently_used(std::span<const SlotCandidate> slots, std::span<const Token> wanted) {
    const SlotCandidate* best = nullptr;
    for (const SlotCandidate& slot : slots) {
        if (slot.idle && (best == nullptr || goes_first(slot, *best))) {
            best = &slot;
        }
    }
    if (best == nullptr) {
        return {};
    }
    SlotChoice choice = assess(*best, wanted);
    choice.exchange = true;
    choice.by_similarity = false;
    return choice;
}

}  // namespace

bool SlotChoice::continues_text() const {
    return by_similarity && similarity >= least_common && f_keep >= least_common;
}

SlotChoice choose_slot(std::span<const SlotCandidate> slots, std::span<const Token> wanted, float threshold,
                       std::int32_t id_slot) {
    if (id_slot >= 0) {
        const auto named = std::ranges::find(slots, id_slot, &SlotCandidate::id);
        return named != slots.end() && named->idle ? assess(*named, wanted) : SlotChoice{};
    }
    if (threshold != 0.0F) {
        const SlotChoice similar = most_similar(slots, wanted, threshold);
        if (similar.id >= 0) {
            return similar;
        }
    }
    return least_recently_used(slots, wanted);
}

}  // namespace paddock
