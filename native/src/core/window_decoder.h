// Decodes the rows of a cycle in windows, and what happens when a decode fails (10 §14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/batch.h"
#include "core/decode_state.h"
#include "core/speculation/speculator.h"

namespace paddock {

class WindowDecoder {
  public:
    /// `between_windows` lets cancels take effect before the next window.
    WindowDecoder(DecodeState& state, Speculator& speculator, std::function<void()> between_windows);

    /// Every row is decoded, or its slot was released with an error.
    void run(Batch& batch);

    /// Of the last run: time within decodes, and whether one decode did it.
    Micros decode_us() const { return decode_us_; }
    bool was_smooth() const { return n_decodes_ == 1; }

    /// The device is gone: three windows in a row failed (10 §14.8).
    bool is_lost() const { return fatal_in_a_row_ >= max_fatal; }

  private:
    static constexpr std::int32_t max_fatal = 3;
    static constexpr std::int32_t max_aborts = 3;

    struct Progress {
        /// First row not decoded yet, and first one behind the window.
        std::size_t start = 0;
        std::size_t end = 0;
        std::size_t limit = 0;
        std::int32_t aborts = 0;
        /// Rows of one slot at a time up to here, to find whose rows are invalid.
        std::size_t solo_until = 0;
    };

    bool assemble(Batch& batch, Progress& progress);
    void keep_drafts_whole(Batch& batch, Progress& progress);
    void give_up_draft(Batch& batch, std::size_t first);
    void confirm(Batch& batch);
    void serve_outputs();
    void on_failure(std::int32_t code, Batch& batch, Progress& progress);
    void on_no_room(Batch& batch, Progress& progress);
    bool on_abort(Batch& batch, Progress& progress);
    void fail_owners(Batch& batch, const std::string& message);
    bool purge_oldest_idle();
    void fail_and_clear(Slot& slot, const std::string& message);
    Slot& owner(const OwnedRow& row) { return state_.slots[static_cast<std::size_t>(row.slot)]; }
    bool is_live(const OwnedRow& row);

    DecodeState& state_;
    Speculator& speculator_;
    std::function<void()> between_windows_;
    std::vector<BatchRow> window_;
    /// Row of the batch behind each row of the window.
    std::vector<std::size_t> members_;
    std::int32_t fatal_in_a_row_ = 0;
    Micros decode_us_ = 0;
    std::int32_t n_decodes_ = 0;
};

}  // namespace paddock
