#include "core/scheduler.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/context_shift.h"
#include "core/dispatch.h"
#include "core/prompt_fill.h"
#include "core/refill.h"
#include "core/tree_rows.h"

namespace paddock {

namespace {

constexpr std::int32_t max_empty_cycles = 3;

bool is_runnable(const Slot& slot) { return slot.is_filling() || slot.state == SlotState::generating; }

}  // namespace

Scheduler::Scheduler(DecodeState state, TaskQueue& tasks, std::function<void()> publish)
    : state_(std::move(state)),
      tasks_(tasks),
      publish_(std::move(publish)),
      speculator_(state_),
      windows_(state_, speculator_, [this] {
          // Only cancels matter now; the rest keeps its order behind what waits.
          take_tasks();
      }) {}

bool Scheduler::cycle() {
    take_tasks();
    for (Slot& slot : state_.slots) {
        slot.drops_rows = false;
        slot.rows_in_batch = 0;
    }
    shift_full_slots();
    const std::vector<Slot*> members = choose_group();
    if (members.empty()) {
        publish_();
        return false;
    }
    const Group group = group_of(*members.front());
    const Micros begun = now_us();
    speculator_.draft(members);
    batch_.start(static_cast<std::size_t>(state_.facts().n_batch));
    add_generation_rows(members);
    const std::size_t n_generation_rows = batch_.size();
    if (batch_.empty() || (state_.params.cont_batching && speculator_.wants_prompts())) {
        add_prompt_rows(members);
    }
    if (batch_.empty()) {
        on_empty_cycle();
        publish_();
        return true;
    }
    empty_cycles_ = 0;
    apply_settings(group);
    publish_();
    windows_.run(batch_);
    speculator_.end_cycle({.total_us = now_us() - begun,
                           .decode_us = windows_.decode_us(),
                           .n_rows = static_cast<std::int32_t>(batch_.size()),
                           .is_pure = batch_.size() == n_generation_rows && windows_.was_smooth(),
                           .is_prompt = n_generation_rows == 0 && windows_.was_smooth()});
    if (is_lost()) {
        fail_all(ErrorKind::server, "The device of this engine fails every computation");
    }
    publish_();
    return true;
}

void Scheduler::take_tasks() {
    if (tasks_.empty() && state_.deferred.empty()) {
        return;
    }
    if (dispatch(state_, tasks_.take_all())) {
        empty_cycles_ = 0;
    }
}

void Scheduler::shift_full_slots() {
    for (Slot& slot : state_.slots) {
        const bool is_full =
            slot.state == SlotState::generating && slot.n_tokens() + 1 >= state_.facts().n_ctx_slot;
        if (!is_full || !state_.params.context_shift) {
            continue;
        }
        const SlotRequest& request = *slot.request;
        if (request.task.parent >= 0 || !request.task.children.empty()) {
            state_.fail(slot, ErrorKind::server, "context shift cannot be used for shared prompts");
            continue;
        }
        const ShiftPlan plan = plan_shift(
            slot.n_tokens(), state_.facts().n_ctx_slot, request.params->n_keep, request.params->n_discard,
            static_cast<std::int32_t>(request.task.tokens.size()), state_.model.vocabulary->adds_bos());
        slot.request->was_shifted = true;
        if (!apply_shift(state_.context(), slot.id, slot.record, plan) && !start_refill(state_, slot)) {
            continue;
        }
        state_.log(log_warning, "slot " + std::to_string(slot.id) + ": context shift, " +
                                    std::to_string(plan.discard) + " tokens discarded");
    }
}

Scheduler::Group Scheduler::group_of(const Slot& slot) const {
    return {.embeds = slot.embeds(), .adapters = adapters_of_next_rows(state_, slot)};
}

/// The members of the group that has waited longest; ties go to the lowest slot id.
std::vector<Slot*> Scheduler::choose_group() {
    Slot* first = nullptr;
    for (Slot& slot : state_.slots) {
        if (is_runnable(slot) && (first == nullptr || slot.waited > first->waited)) {
            first = &slot;
        }
    }
    std::vector<Slot*> members;
    if (first == nullptr) {
        return members;
    }
    const Group group = group_of(*first);
    for (Slot& slot : state_.slots) {
        if (!is_runnable(slot)) {
            continue;
        }
        if (group_of(slot) == group) {
            slot.waited = 0;
            members.push_back(&slot);
        } else {
            ++slot.waited;
        }
    }
    return members;
}

void Scheduler::add_generation_rows(const std::vector<Slot*>& members) {
    for (Slot* slot : members) {
        if (slot->state != SlotState::generating) {
            continue;
        }
        if (!slot->request->draft.tree.empty()) {
            add_tree_rows(batch_, *slot);
            continue;
        }
        const std::vector<Token>& drafted = slot->request->draft.tokens;
        OwnedRow& row = batch_.add(*slot, slot->request->pending);
        row.row.output = true;
        row.is_slot_output = drafted.empty();
        row.is_verify = !drafted.empty();
        for (const Token token : drafted) {
            OwnedRow& next = batch_.add(*slot, token);
            next.row.output = true;
            next.is_verify = true;
        }
    }
}

void Scheduler::add_prompt_rows(const std::vector<Slot*>& members) {
    std::vector<Slot*> filling;
    std::ranges::copy_if(members, std::back_inserter(filling),
                         [](const Slot* slot) { return slot->is_filling(); });
    // Oldest first; one that has not begun is younger than all that have.
    std::ranges::stable_sort(filling, [](const Slot* a, const Slot* b) {
        const auto started = [](const Slot* slot) {
            return slot->state == SlotState::started ? std::numeric_limits<Micros>::max()
                                                     : slot->request->prompt_start;
        };
        return started(a) < started(b);
    });
    for (Slot* slot : filling) {
        fill_prompt(state_, *slot, batch_);
    }
}

void Scheduler::apply_settings(const Group& group) {
    if (group.embeds != embeddings_on_) {
        state_.context().set_embeddings(group.embeds);
        embeddings_on_ = group.embeds;
    }
    if (group.adapters != adapters_on_) {
        state_.context().set_adapters(group.adapters);
        adapters_on_ = group.adapters;
    }
}

/// Slots are busy and none of them had a row: not meant to happen, and must not spin (10 §12.3).
void Scheduler::on_empty_cycle() {
    if (state_.busy_slots() == 0) {
        return;
    }
    state_.log(log_warning, "a cycle without rows, although slots are busy");
    if (++empty_cycles_ < max_empty_cycles) {
        return;
    }
    empty_cycles_ = 0;
    for (Slot& slot : state_.slots) {
        if (!slot.is_idle()) {
            state_.fail(slot, ErrorKind::server, "Scheduler made no progress");
        }
    }
}

void Scheduler::save_prompts() {
    if (!state_.cache.enabled()) {
        return;
    }
    for (Slot& slot : state_.slots) {
        if (!slot.record.tokens.empty()) {
            state_.cache.save(state_.context(), slot.id, slot.record);
        }
    }
    state_.cache.enforce_limits();
}

void Scheduler::fail_all(ErrorKind kind, const std::string& message) {
    for (Slot& slot : state_.slots) {
        if (!slot.is_idle()) {
            state_.fail(slot, kind, message);
        }
    }
    for (const Work& work : std::exchange(state_.deferred, {})) {
        for (const Task& task : work.tasks) {
            state_.send_error(task, kind, message);
        }
    }
}

}  // namespace paddock
