#include "core/slot_actions.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/adapters.h"
#include "core/launch.h"

namespace paddock {

namespace {

Result answer_to(const Task& task, ResultKind kind) {
    Result result;
    result.id = task.id;
    result.index = task.index;
    result.kind = kind;
    result.id_slot = task.id_slot;
    return result;
}

/// A name beside `path` that nobody else writes to. Short, since the client's own may be as long as a name
/// can be.
std::string temporary_beside(const std::filesystem::path& path, TaskId id) {
    std::string name = ".";
    name.append(std::to_string(getpid())).append(".").append(std::to_string(id)).append(".part");
    return (path.parent_path() / name).string();
}

/// Written beside its place and renamed, so that a reader never sees half a file (10 §20.2).
void save(DecodeState& state, Slot& slot, const Task& task) {
    const Micros start = now_us();
    const std::string temporary = temporary_beside(task.file_path, task.id);
    const std::size_t n_bytes = state.context().save_file(slot.id, temporary, slot.record.tokens);
    std::error_code problem;
    if (n_bytes > 0) {
        std::filesystem::rename(temporary, task.file_path, problem);
    }
    if (n_bytes == 0 || problem) {
        std::error_code ignored;
        std::filesystem::remove(temporary, ignored);
        const std::string why = problem ? problem.message() : "nothing could be written; is the disk full?";
        state.send_error(task, ErrorKind::server,
                         "Unable to save the slot to " + task.file_name + ": " + why);
        return;
    }
    Result result = answer_to(task, ResultKind::slot_save);
    result.n_slot_tokens = slot.n_tokens();
    result.n_bytes = static_cast<std::int64_t>(n_bytes);
    result.action_ms = to_ms(now_us() - start);
    state.results.push(std::move(result));
}

/// Whether what was loaded can be gone on with; nothing: it can.
std::optional<std::string> problem_of_restored(DecodeState& state, const Slot& slot,
                                               const std::vector<Token>& tokens) {
    const std::int32_t n_vocab = state.model.vocabulary->size();
    const auto unknown = std::ranges::find_if(tokens, [&](Token id) { return id < 0 || id >= n_vocab; });
    if (unknown != tokens.end()) {
        return "holds the token " + std::to_string(*unknown) + ", but the model knows 0 to " +
               std::to_string(n_vocab - 1);
    }
    const ContextFacts& facts = state.facts();
    if (!facts.has_memory) {
        return std::nullopt;
    }
    const Position first = state.context().position_min(slot.id);
    const Position last = state.context().position_max(slot.id);
    const auto n_tokens = static_cast<Position>(tokens.size());
    // A window and a running state don't hold the first tokens any more.
    const bool forgets = facts.n_swa > 0 || facts.is_recurrent || facts.is_hybrid;
    const bool is_sound =
        n_tokens == 0 ? last < 0 : last == n_tokens - 1 && first >= 0 && first <= (forgets ? last : 0);
    if (is_sound) {
        return std::nullopt;
    }
    return "left the positions " + std::to_string(first) + " to " + std::to_string(last) + " for " +
           std::to_string(n_tokens) + " tokens";
}

void restore(DecodeState& state, Slot& slot, const Task& task) {
    const Micros start = now_us();
    const auto capacity = static_cast<std::size_t>(state.facts().n_ctx_slot);
    std::vector<Token> tokens;
    // What a failed load leaves in memory belongs to no list.
    state.clear(slot);
    const auto refuse = [&](const std::string& problem) {
        state.clear(slot);
        state.send_error(task, ErrorKind::invalid_request,
                         "Unable to restore the slot from " + task.file_name + ", which " + problem +
                             "; the file has to be one that this model's slots were saved to");
    };
    if (const auto problem = state.context().problem_of_file(task.file_path, capacity)) {
        refuse(*problem);
        return;
    }
    const std::size_t n_bytes = state.context().load_file(slot.id, task.file_path, capacity, tokens);
    if (n_bytes == 0 || tokens.size() > capacity) {
        refuse("doesn't fit this model or the memory that is left");
        return;
    }
    if (const auto problem = problem_of_restored(state, slot, tokens)) {
        refuse(*problem);
        return;
    }
    slot.record.tokens = std::move(tokens);
    slot.is_drafting_stale = true;
    slot.adapters = wanted_scales(state.loras, std::nullopt);
    slot.record.lora_key = key_of(state, slot.adapters);
    slot.last_used = now_us();
    Result result = answer_to(task, ResultKind::slot_restore);
    result.n_slot_tokens = slot.n_tokens();
    result.n_bytes = static_cast<std::int64_t>(n_bytes);
    result.action_ms = to_ms(now_us() - start);
    state.results.push(std::move(result));
}

void erase(DecodeState& state, Slot& slot, const Task& task) {
    Result result = answer_to(task, ResultKind::slot_erase);
    result.n_slot_tokens = slot.n_tokens();
    state.clear(slot);
    state.results.push(std::move(result));
}

bool run_slot_action(DecodeState& state, const Task& task) {
    const auto n_slots = static_cast<std::int32_t>(state.slots.size());
    if (task.id_slot < 0 || task.id_slot >= n_slots) {
        state.send_error(task, ErrorKind::invalid_request,
                         "Invalid slot ID: " + std::to_string(task.id_slot) +
                             "; this server has the slots 0 to " + std::to_string(n_slots - 1));
        return true;
    }
    Slot& slot = state.slots[static_cast<std::size_t>(task.id_slot)];
    if (!slot.is_idle()) {
        return false;
    }
    if (task.kind == TaskKind::slot_save) {
        save(state, slot, task);
    } else if (task.kind == TaskKind::slot_restore) {
        restore(state, slot, task);
    } else {
        erase(state, slot, task);
    }
    return true;
}

void list_loras(DecodeState& state, const Task& task) {
    Result result = answer_to(task, ResultKind::lora);
    result.loras = state.loras;
    state.results.push(std::move(result));
}

/// Slots take the new list at their next launch (10 §19.7).
void set_loras(DecodeState& state, const Task& task) {
    if (const auto problem = problem_of_scales(task.lora_scales, state.loras.size())) {
        state.send_error(task, ErrorKind::invalid_request, *problem);
        return;
    }
    for (LoraView& lora : state.loras) {
        const auto found = task.lora_scales.find(lora.id);
        lora.scale = found == task.lora_scales.end() ? 0.0F : found->second;
    }
    Result result = answer_to(task, ResultKind::ok);
    result.success = true;
    state.results.push(std::move(result));
}

/// Ends the reasoning of a running completion (10 §22.4).
void end_reasoning(DecodeState& state, const Task& task) {
    Result result = answer_to(task, ResultKind::ok);
    result.text = "no running completion has this id";
    for (Slot& slot : state.slots) {
        if (slot.request == nullptr || slot.request->task.completion_id != task.completion_id) {
            continue;
        }
        const bool is_armed = slot.request->params->sampling.reasoning.controllable;
        const bool has_begun = slot.request->sampler != nullptr && slot.state == SlotState::generating;
        if (is_armed && has_begun && slot.request->sampler->force_end()) {
            result.success = true;
        } else if (!result.success) {
            result.text = is_armed ? "the completion is not inside its reasoning"
                                   : "the request did not set reasoning_control";
        }
    }
    if (result.success) {
        result.text.clear();
    }
    state.results.push(std::move(result));
}

}  // namespace

bool run_action(DecodeState& state, const Task& task) {
    switch (task.kind) {
        case TaskKind::slot_save:
        case TaskKind::slot_restore:
        case TaskKind::slot_erase: return run_slot_action(state, task);
        case TaskKind::lora_get: list_loras(state, task); return true;
        case TaskKind::lora_set: set_loras(state, task); return true;
        case TaskKind::control: end_reasoning(state, task); return true;
        default: return true;
    }
}

}  // namespace paddock
