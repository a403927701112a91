// How many tokens a slot may draft once its controller has named a depth (11 §8.4).
#pragma once

#include <cstdint>
#include <optional>

namespace paddock {

/// What bounds a draft besides the controller; rows and tokens.
struct DraftRoom {
    std::int64_t n_ctx = 0;
    std::int64_t n_tokens = 0;
    /// Tokens that the request may still emit; nothing: no limit.
    std::optional<std::int64_t> remaining;
    std::int64_t n_batch = 0;
    std::int64_t n_ubatch = 0;
    /// Steps that the memory can go back; only where it steps back by snapshots (11 §13.4).
    std::optional<std::int64_t> n_rs_seq;
    std::int64_t batch_rows_left = 0;
    /// Other generating slots of the group that have no row in the batch yet.
    std::int64_t n_unplaced = 0;
};

/// The controller's `cap`, clamped; 0 when less than `n_min` is left.
std::int32_t draft_limit(std::int32_t cap, std::int32_t n_min, const DraftRoom& room);

}  // namespace paddock
