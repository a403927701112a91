#include "core/window_decoder.h"

#include <algorithm>
#include <utility>

#include "core/partials.h"
#include "core/refill.h"
#include "core/token_step.h"

namespace paddock {

namespace {

constexpr std::int32_t code_no_room = 1;
constexpr std::int32_t code_aborted = 2;
constexpr std::int32_t code_invalid = -1;

}  // namespace

WindowDecoder::WindowDecoder(DecodeState& state, Speculator& speculator,
                             std::function<void()> between_windows)
    : state_(state), speculator_(speculator), between_windows_(std::move(between_windows)) {}

void WindowDecoder::run(Batch& batch) {
    Progress progress;
    decode_us_ = 0;
    n_decodes_ = 0;
    progress.limit = static_cast<std::size_t>(state_.facts().n_batch);
    while (assemble(batch, progress)) {
        const Micros begun = now_us();
        speculator_.trees().fork(window_);
        const std::int32_t code = state_.context().decode(window_);
        decode_us_ += now_us() - begun;
        ++n_decodes_;
        state_.metrics.on_decode(code, state_.busy_slots());
        if (code != 0) {
            speculator_.trees().withdraw();
            on_failure(code, batch, progress);
            if (is_lost()) {
                return;
            }
            continue;
        }
        fatal_in_a_row_ = 0;
        progress.aborts = 0;
        progress.limit = static_cast<std::size_t>(state_.facts().n_batch);
        confirm(batch);
        serve_outputs();
        progress.start = progress.end;
        if (progress.start < batch.size()) {
            between_windows_();
        }
    }
}

bool WindowDecoder::is_live(const OwnedRow& row) {
    const Slot& slot = owner(row);
    return slot.request != nullptr && slot.request->task.id == row.task && !slot.drops_rows && !row.is_void;
}

/// The next rows whose slots still want them; false when there are none left.
bool WindowDecoder::assemble(Batch& batch, Progress& progress) {
    window_.clear();
    members_.clear();
    const bool is_solo = progress.start < progress.solo_until;
    std::size_t next = progress.start;
    for (; next < batch.size() && window_.size() < progress.limit; ++next) {
        const OwnedRow& row = batch[next];
        if (!is_live(row)) {
            continue;
        }
        if (is_solo && !members_.empty() && batch[members_.front()].slot != row.slot) {
            break;
        }
        window_.push_back(row.row);
        members_.push_back(next);
    }
    progress.end = next;
    keep_drafts_whole(batch, progress);
    return !window_.empty();
}

/// The end moves back to the start of a draft that it cuts; a draft that is longer than a window is given up.
void WindowDecoder::keep_drafts_whole(Batch& batch, Progress& progress) {
    if (members_.empty() || !batch[members_.back()].is_verify) {
        return;
    }
    const SequenceId slot = batch[members_.back()].slot;
    const auto is_of_draft = [&](std::size_t index) {
        return index < batch.size() && batch[index].is_verify && batch[index].slot == slot;
    };
    if (!is_of_draft(progress.end) || !is_live(batch[progress.end])) {
        return;
    }
    std::size_t n_before = members_.size();
    while (n_before > 0 && is_of_draft(members_[n_before - 1])) {
        --n_before;
    }
    const std::size_t first = members_[n_before];
    if (n_before == 0) {
        give_up_draft(batch, first);
        window_.front() = batch[first].row;
        n_before = 1;
    }
    progress.end = n_before == 1 && members_.front() == first ? first + 1 : first;
    window_.resize(n_before);
    members_.resize(n_before);
}

void WindowDecoder::give_up_draft(Batch& batch, std::size_t first) {
    OwnedRow& pending = batch[first];
    Slot& slot = owner(pending);
    pending.is_verify = false;
    pending.is_slot_output = true;
    pending.row.branches.clear();
    for (std::size_t i = first + 1; i < batch.size() && batch[i].is_verify && batch[i].slot == pending.slot;
         ++i) {
        batch[i].is_void = true;
        slot.rows_in_batch -= batch[i].is_side ? 0 : 1;
    }
    slot.request->draft = {};
}

/// The rows of a good window are in memory now: the lists of their slots say so too (10 §2.2).
void WindowDecoder::confirm(Batch& batch) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const OwnedRow& row = batch[members_[i]];
        Slot& slot = owner(row);
        if (row.is_side) {
            slot.request->verify_rows.push_back(static_cast<std::int32_t>(i));
            continue;
        }
        slot.record.tokens.push_back(row.row.token);
        --slot.rows_in_batch;
        if (slot.state == SlotState::processing_prompt || slot.state == SlotState::done_prompt) {
            ++slot.n_prompt_processed;
        }
        if (slot.request->task.kind == TaskKind::embedding && state_.facts().pooling == pooling_none) {
            const auto vector = state_.context().row_embedding(static_cast<std::int32_t>(i));
            slot.request->row_embeddings.emplace_back(vector.begin(), vector.end());
        }
        if (row.is_slot_output) {
            slot.window_row = static_cast<std::int32_t>(i);
        }
        if (row.is_verify) {
            slot.request->verify_rows.push_back(static_cast<std::int32_t>(i));
        }
        auto& largest = state_.metrics.totals.n_tokens_max;
        largest = std::max<std::int64_t>(largest, slot.n_tokens());
    }
}

void WindowDecoder::serve_outputs() {
    for (Slot& slot : state_.slots) {
        if (slot.state == SlotState::done_prompt && slot.window_row != no_row &&
            !slot.request->task.children.empty()) {
            fan_out(state_, slot);
        }
    }
    speculator_.open_window(static_cast<std::int32_t>(window_.size()));
    for (Slot& slot : state_.slots) {
        if (slot.request == nullptr) {
            continue;
        }
        const bool had_rows =
            std::ranges::any_of(window_, [&](const BatchRow& row) { return row.sequence == slot.id; });
        if (had_rows &&
            (slot.state == SlotState::processing_prompt || slot.state == SlotState::done_prompt)) {
            send_progress(state_, slot);
        }
        end_refill(slot);
        if (!slot.request->verify_rows.empty()) {
            speculator_.verify(slot);
            continue;
        }
        if (slot.window_row != no_row) {
            step(state_, slot);
            slot.window_row = no_row;
        }
    }
    speculator_.settle();
}

void WindowDecoder::on_failure(std::int32_t code, Batch& batch, Progress& progress) {
    state_.log(log_warning, "decoding " + std::to_string(window_.size()) + " rows failed with code " +
                                std::to_string(code));
    if (code == code_no_room) {
        on_no_room(batch, progress);
        return;
    }
    if (code == code_aborted && on_abort(batch, progress)) {
        return;
    }
    if (code == code_invalid) {
        if (progress.start < progress.solo_until ||
            batch[members_.front()].slot == batch[members_.back()].slot) {
            fail_owners(batch, "Invalid input batch.");
            progress.start = progress.end;
        } else {
            progress.solo_until = progress.end;
        }
        return;
    }
    ++fatal_in_a_row_;
    fail_owners(batch, "Compute error.");
    progress.start = progress.end;
}

/// One remedy per attempt, the gentlest first (10 §14.3).
void WindowDecoder::on_no_room(Batch& batch, Progress& progress) {
    if (state_.facts().kv_unified && purge_oldest_idle()) {
        return;
    }
    Slot& first = owner(batch[members_.front()]);
    const bool is_one_slot = batch[members_.back()].slot == first.id;
    if (first.embeds()) {
        // Half a prompt would give half an embedding.
        if (is_one_slot) {
            fail_and_clear(first, "Context size has been exceeded.");
        } else {
            progress.solo_until = progress.end;
        }
        return;
    }
    if (window_.size() == 1) {
        fail_and_clear(first, "Context size has been exceeded.");
        progress.start = progress.end;
        return;
    }
    progress.limit = std::max<std::size_t>(1, std::min(progress.limit, window_.size()) / 2);
}

/// Part of the window may be in memory; what no list knows of is removed before the next try (10 §14.4).
bool WindowDecoder::on_abort(Batch& batch, Progress& progress) {
    for (const std::size_t member : members_) {
        Slot& slot = owner(batch[member]);
        if (is_live(batch[member]) && !state_.context().remove(slot.id, slot.n_tokens(), end_position)) {
            start_refill(state_, slot);
        }
    }
    return ++progress.aborts <= max_aborts;
}

void WindowDecoder::fail_owners(Batch& batch, const std::string& message) {
    for (const std::size_t member : members_) {
        if (is_live(batch[member])) {
            fail_and_clear(owner(batch[member]), message);
        }
    }
}

void WindowDecoder::fail_and_clear(Slot& slot, const std::string& message) {
    state_.fail(slot, ErrorKind::server, message);
    state_.clear(slot);
}

bool WindowDecoder::purge_oldest_idle() {
    Slot* oldest = nullptr;
    for (Slot& slot : state_.slots) {
        const bool holds = slot.is_idle() && !slot.record.tokens.empty();
        if (holds && (oldest == nullptr || slot.last_used < oldest->last_used)) {
            oldest = &slot;
        }
    }
    if (oldest == nullptr) {
        return false;
    }
    state_.log(log_warning,
               "slot " + std::to_string(oldest->id) + ": its prompt makes room for those that run");
    state_.clear(*oldest);
    return true;
}

}  // namespace paddock
