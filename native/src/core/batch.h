// The rows of one cycle, and whose they are (10 §12-13).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/context.h"
#include "core/slot.h"

namespace paddock {

struct OwnedRow {
    BatchRow row;
    SequenceId slot = 0;
    /// Task that the row was made for: rows of a released slot are skipped.
    TaskId task = 0;
    /// The row that its slot samples from, or that ends its prompt.
    bool is_slot_output = false;
    /// A row of a draft's verification: of the pending token, or of a drafted one. All of a slot's are
    /// decoded in one window (10 §14.1).
    bool is_verify = false;
    /// Of a side chain: not in the slot's own sequence, and not in its list.
    bool is_side = false;
    /// Of a draft that was given up.
    bool is_void = false;
};

/// Rows in order: generation first, then prompts. Memory is kept between cycles.
class Batch {
  public:
    void start(std::size_t n_rows_expected) {
        rows_.clear();
        rows_.reserve(n_rows_expected);
    }
    std::size_t size() const { return rows_.size(); }
    bool empty() const { return rows_.empty(); }
    OwnedRow& operator[](std::size_t index) { return rows_[index]; }

    /// Adds the next row of a slot; its position follows what is in memory and in the batch already.
    OwnedRow& add(Slot& slot, Token token) {
        const Position position = slot.n_tokens() + slot.rows_in_batch;
        ++slot.rows_in_batch;
        rows_.push_back({.row = {.token = token, .position = position, .sequence = slot.id, .output = false},
                         .slot = slot.id,
                         .task = slot.request->task.id});
        return rows_.back();
    }

    /// Adds a row that a slot's own sequence does not get.
    OwnedRow& add_side(const Slot& slot, Token token, Position position, SequenceId sequence) {
        rows_.push_back({.row = {.token = token, .position = position, .sequence = sequence, .output = false},
                         .slot = slot.id,
                         .task = slot.request->task.id,
                         .is_side = true});
        return rows_.back();
    }

  private:
    std::vector<OwnedRow> rows_;
};

}  // namespace paddock
