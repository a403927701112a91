// Which slot takes a request: the one whose prompt suits it best, else the one unused for longest (10 §6).
#pragma once

#include <cstdint>
#include <span>

#include "core/types.h"

namespace paddock {

struct SlotCandidate {
    std::int32_t id = 0;
    bool idle = false;
    /// Tokens that its memory holds.
    std::span<const Token> cached;
    /// -1: never.
    Micros last_used = -1;
    /// Whether its memory is of use under the adapters of the request (10 §19.3).
    bool keeps_cache = true;
    bool can_speculate = false;
};

struct SlotChoice {
    /// -1: none is free, and the request has to wait.
    std::int32_t id = -1;
    /// Share of the request's tokens that the slot's memory begins with, and of the slot's tokens that stay.
    float similarity = 0.0F;
    float f_keep = 0.0F;
    /// The slot's prompt goes to the RAM cache, and a better one may come from there.
    bool exchange = false;
    /// Chosen for its prompt, or by name; false: it was only the least recently used one (10 §6.5).
    bool by_similarity = false;

    /// Whether the request goes on with the text that the slot holds (10 §6.5).
    bool continues_text() const;
};

/// `threshold`: least similarity, exclusive; exactly 0 leaves similarity out of the choice. `id_slot`: the
/// only slot that will do, -1: any; the caller has checked its range.
SlotChoice choose_slot(std::span<const SlotCandidate> slots, std::span<const Token> wanted, float threshold,
                       std::int32_t id_slot);

}  // namespace paddock
