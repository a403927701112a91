// Notes of what a fake context was asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/context.h"

namespace paddock::testing {

/// What was asked of a context, readable while a decode thread works on it and after it is gone.
class Journal {
  public:
    /// Rows of a decode, and the code that it gave.
    struct Window {
        std::vector<BatchRow> rows;
        std::int32_t code = 0;
        std::vector<AdapterScale> adapters;
        bool embeds = false;
    };

    void add(Window window) {
        const std::lock_guard lock(mutex_);
        windows_.push_back(std::move(window));
    }
    /// E.g. "remove 0 [2,4)", "shift 0 [4,6) -2", "copy 0 1", "write 0 partial".
    void add(std::string move) {
        const std::lock_guard lock(mutex_);
        moves_.push_back(std::move(move));
    }
    std::vector<Window> windows() const {
        const std::lock_guard lock(mutex_);
        return windows_;
    }
    std::vector<std::string> moves() const {
        const std::lock_guard lock(mutex_);
        return moves_;
    }
    /// Rows of a sequence in each good window that had some.
    std::vector<std::int32_t> visits(SequenceId sequence) const {
        std::vector<std::int32_t> counts;
        for (const Window& window : windows()) {
            const auto n_rows = std::ranges::count(window.rows, sequence, &BatchRow::sequence);
            if (window.code == 0 && n_rows > 0) {
                counts.push_back(static_cast<std::int32_t>(n_rows));
            }
        }
        return counts;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<Window> windows_;
    std::vector<std::string> moves_;
};

}  // namespace paddock::testing
