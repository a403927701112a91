#include "core/dispatch.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/adapters.h"
#include "core/launch.h"
#include "core/slot_actions.h"
#include "core/slot_choice.h"

namespace paddock {

namespace {

bool needs_slot(TaskKind kind) {
    return generates(kind) || kind == TaskKind::embedding || kind == TaskKind::rerank;
}

/// Index of the slot that a task gets, or none: it has to wait.
SlotChoice choose(const DecodeState& state, const Task& task) {
    const std::vector<AdapterScale> wanted = wanted_scales(state.loras, task.params.lora);
    std::vector<SlotCandidate> candidates;
    candidates.reserve(state.slots.size());
    for (const Slot& slot : state.slots) {
        candidates.push_back({.id = slot.id,
                              .idle = slot.is_idle(),
                              .cached = slot.record.tokens,
                              .last_used = slot.last_used,
                              .keeps_cache = keeps_prompt(state, slot, wanted),
                              .can_speculate = false});
    }
    return choose_slot(candidates, task.tokens, state.params.slot_prompt_similarity, task.id_slot);
}

/// Saves what the slot holds and looks for something that suits the task better (10 §6.6).
void exchange_prompt(DecodeState& state, Slot& slot, const Task& task) {
    if (!state.cache.enabled() || task.kind != TaskKind::completion || !task.params.cache_prompt) {
        return;
    }
    const Micros start = now_us();
    if (!slot.record.tokens.empty()) {
        state.cache.save(state.context(), slot.id, slot.record);
    }
    const std::vector<AdapterScale> wanted = wanted_scales(state.loras, task.params.lora);
    const LoraKey key = key_of(state, wanted);
    if (!keeps_prompt(state, slot, wanted)) {
        state.clear(slot);
    }
    // What is loaded was computed under the adapters of the task: the launch has to see that.
    slot.adapters = wanted;
    slot.record.lora_key = key;
    if (!state.cache.load(state.context(), slot.id, slot.record, task.tokens, key)) {
        state.clear(slot);
    }
    state.cache.enforce_limits();
    state.log(log_debug, "slot " + std::to_string(slot.id) + ": prompt exchange took " +
                             std::to_string((now_us() - start) / 1000) + " ms");
}

/// What other slots hold is kept in host memory, since the one memory is wanted by those that work (10 §4.7).
void save_idle_slots(DecodeState& state) {
    if (!state.params.cache_idle_slots || !state.cache.enabled()) {
        return;
    }
    for (Slot& slot : state.slots) {
        if (!slot.is_idle() || slot.record.tokens.empty()) {
            continue;
        }
        state.cache.save(state.context(), slot.id, slot.record);
        if (state.facts().kv_unified) {
            state.clear(slot);
        }
    }
    state.cache.enforce_limits();
}

/// Idle slots for the children of a parent, in id order, other than the one that the parent gets.
std::vector<Slot*> slots_for_children(DecodeState& state, const Work& work, SequenceId parent) {
    std::vector<Slot*> found;
    for (Slot& slot : state.slots) {
        if (slot.is_idle() && slot.id != parent && found.size() + 1 < work.tasks.size()) {
            found.push_back(&slot);
        }
    }
    return found;
}

void fail_all(DecodeState& state, const Work& work, ErrorKind kind, const std::string& message) {
    for (const Task& task : work.tasks) {
        state.send_error(task, kind, message);
    }
}

/// A request for each task of a work, in its order; the first problem refuses them all.
std::variant<std::vector<Prepared>, LaunchProblem> prepare_all(const DecodeState& state, const Work& work) {
    std::vector<Prepared> all;
    all.reserve(work.tasks.size());
    for (const Task& task : work.tasks) {
        auto prepared = prepare(state, task);
        if (auto* problem = std::get_if<LaunchProblem>(&prepared)) {
            return std::move(*problem);
        }
        all.push_back(std::get<Prepared>(std::move(prepared)));
    }
    return all;
}

/// What these slots hold stays in host memory, since the prompt of the parent takes its place.
void save_before_copy(DecodeState& state, const std::vector<Slot*>& children) {
    if (!state.cache.enabled()) {
        return;
    }
    for (Slot* slot : children) {
        if (!slot->record.tokens.empty()) {
            state.cache.save(state.context(), slot->id, slot->record);
        }
    }
    state.cache.enforce_limits();
}

enum class Placed { no, launched, done };

Placed place(DecodeState& state, const Work& work) {
    const Task& task = work.tasks.front();
    const auto n_slots = static_cast<std::int32_t>(state.slots.size());
    if (task.id_slot >= n_slots || task.id_slot < -1) {
        fail_all(state, work, ErrorKind::invalid_request,
                 "Invalid slot ID: " + std::to_string(task.id_slot) + "; this server has the slots 0 to " +
                     std::to_string(n_slots - 1));
        return Placed::done;
    }
    if (work.tasks.size() > state.slots.size()) {
        fail_all(state, work, ErrorKind::invalid_request,
                 std::to_string(work.tasks.size()) + " choices were asked for, and this server has " +
                     std::to_string(n_slots) + " slots");
        return Placed::done;
    }
    const SlotChoice choice = choose(state, task);
    if (choice.id < 0) {
        return Placed::no;
    }
    const std::vector<Slot*> children = slots_for_children(state, work, choice.id);
    if (children.size() + 1 < work.tasks.size()) {
        return Placed::no;
    }
    auto prepared = prepare_all(state, work);
    if (const auto* problem = std::get_if<LaunchProblem>(&prepared)) {
        fail_all(state, work, problem->kind, problem->message);
        return Placed::done;
    }
    Slot& slot = state.slots[static_cast<std::size_t>(choice.id)];
    if (choice.exchange) {
        exchange_prompt(state, slot, task);
    }
    save_before_copy(state, children);
    auto& all = std::get<std::vector<Prepared>>(prepared);
    all.front().request->continues_text = choice.continues_text();
    for (std::size_t i = 0; i < children.size(); ++i) {
        launch(state, *children[i], std::move(all[i + 1]));
    }
    launch(state, slot, std::move(all.front()));
    return Placed::launched;
}

bool names(const Task& task, const std::vector<TaskId>& ids) {
    const auto is_named = [&](TaskId id) { return std::ranges::find(ids, id) != ids.end(); };
    return is_named(task.id) || is_named(task.parent) || std::ranges::any_of(task.children, is_named);
}

}  // namespace

bool dispatch(DecodeState& state, std::deque<Work> arrived) {
    std::ranges::move(arrived, std::back_inserter(state.deferred));
    bool is_blocked = false;
    bool has_launched = false;
    // A work leaves the list when it is dealt with: whatever throws in between, its tasks get their error.
    for (auto next = state.deferred.begin(); next != state.deferred.end();) {
        const Task& task = next->tasks.front();
        if (task.kind == TaskKind::cancel) {
            // It may name what waits before it.
            const std::vector<TaskId> ids = task.cancelled;
            state.deferred.erase(next);
            cancel_tasks(state, ids);
            next = state.deferred.begin();
            is_blocked = false;
            continue;
        }
        const bool is_free_to_choose = task.id_slot < 0;
        Placed placed = Placed::no;
        if (!needs_slot(task.kind)) {
            placed = run_action(state, task) ? Placed::done : Placed::no;
        } else if (!is_free_to_choose || !is_blocked) {
            placed = place(state, *next);
            // Whoever needs several slots would otherwise be overtaken for ever.
            is_blocked = is_blocked || (placed == Placed::no && is_free_to_choose);
        }
        has_launched = has_launched || placed == Placed::launched;
        next = placed == Placed::no ? next + 1 : state.deferred.erase(next);
    }
    if (has_launched) {
        save_idle_slots(state);
    }
    return has_launched;
}

void cancel_tasks(DecodeState& state, const std::vector<TaskId>& ids) {
    std::erase_if(state.deferred, [&](const Work& work) {
        return std::ranges::any_of(work.tasks, [&](const Task& task) { return names(task, ids); });
    });
    // A child and its parent go together, whichever of them was named.
    std::vector<TaskId> families = ids;
    for (const Slot& slot : state.slots) {
        if (slot.request != nullptr && names(slot.request->task, ids)) {
            families.push_back(slot.request->task.id);
            families.push_back(slot.request->task.parent);
        }
    }
    std::erase(families, TaskId{-1});
    std::vector<TaskId> closed = ids;
    for (Slot& slot : state.slots) {
        if (slot.request != nullptr && names(slot.request->task, families)) {
            closed.push_back(slot.request->task.id);
            slot.is_drafting_stale = true;
            state.release(slot);
        }
    }
    state.results.close(closed);
}

std::vector<AdapterScale> adapters_of_next_rows(const DecodeState& state, const Slot& slot) {
    std::vector<AdapterScale> scales = slot.adapters;
    const std::int32_t start = slot.request->alora_start;
    if (start > 0 && slot.n_tokens() < start - 1) {
        for (AdapterScale& adapter : scales) {
            if (!state.loras[static_cast<std::size_t>(adapter.adapter)].invocation_tokens.empty()) {
                adapter.scale = 0.0F;
            }
        }
    }
    return scales;
}

}  // namespace paddock
