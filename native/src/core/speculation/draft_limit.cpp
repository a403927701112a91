#include "core/speculation/draft_limit.h"

#include <algorithm>

namespace paddock {

std::int32_t draft_limit(std::int32_t cap, std::int32_t n_min, const DraftRoom& room) {
    std::int64_t limit = cap;
    limit = std::min(limit, room.n_ctx - room.n_tokens - 2);
    if (room.remaining && *room.remaining > 0) {
        limit = std::min(limit, *room.remaining - 1);
    }
    limit = std::min({limit, room.n_batch - 1, room.n_ubatch - 1});
    if (room.n_rs_seq) {
        limit = std::min(limit, *room.n_rs_seq);
    }
    limit = std::min(limit, room.batch_rows_left - 1 - room.n_unplaced);
    return limit < n_min || limit <= 0 ? 0 : static_cast<std::int32_t>(limit);
}

}  // namespace paddock
