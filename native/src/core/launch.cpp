#include "core/launch.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "core/adapters.h"

namespace paddock {

namespace {

bool generates(TaskKind kind) { return kind == TaskKind::completion || kind == TaskKind::infill; }

std::vector<bool> activated_flags(const DecodeState& state) {
    std::vector<bool> flags;
    flags.reserve(state.loras.size());
    for (const LoraView& lora : state.loras) {
        flags.push_back(!lora.invocation_tokens.empty());
    }
    return flags;
}

/// Tokens to generate: the request's, else the server's; -1: unlimited (10 §16.8).
std::int32_t limit_of(const DecodeState& state, const GenerationParams& params) {
    return params.n_predict >= 0 ? params.n_predict : state.params.n_predict;
}

/// Start of the one activated adapter that is switched on; its scale becomes 0 where the prompt does not
/// invoke it (10 §19.5).
std::optional<LaunchProblem> find_invocation(const DecodeState& state, const Task& task,
                                             std::vector<AdapterScale>& scales, std::int32_t& start) {
    const std::vector<bool> activated = activated_flags(state);
    AdapterScale* found = nullptr;
    for (AdapterScale& adapter : scales) {
        if (adapter.scale == 0.0F) {
            continue;
        }
        if (!activated[static_cast<std::size_t>(adapter.adapter)]) {
            return std::nullopt;
        }
        if (found != nullptr) {
            return LaunchProblem{.message = "Multiple activated LoRAs in one request are not supported"};
        }
        found = &adapter;
    }
    if (found == nullptr) {
        return std::nullopt;
    }
    const LoraView& lora = state.loras[static_cast<std::size_t>(found->adapter)];
    if (const auto at = alora_start(task.tokens, lora.invocation_tokens)) {
        start = static_cast<std::int32_t>(*at);
    } else {
        found->scale = 0.0F;
    }
    return std::nullopt;
}

bool has_foreign_token(const DecodeState& state, const Task& task) {
    const std::int32_t n_vocab = state.model.vocabulary->size();
    return std::ranges::any_of(task.tokens, [&](Token token) { return token < 0 || token >= n_vocab; });
}

std::optional<LaunchProblem> make_sampler(const DecodeState& state, SlotRequest& request) {
    try {
        request.sampler = state.model.samplers->make(request.task.params.sampling, request.task.choice,
                                                     state.model.context->facts().n_ctx_slot);
    } catch (const std::exception& problem) {
        return LaunchProblem{.message = std::string("Failed to initialize samplers: ") + problem.what()};
    }
    return std::nullopt;
}

}  // namespace

std::optional<LaunchProblem> launch(DecodeState& state, Slot& slot, const Task& task) {
    if (task.params.lora.has_value()) {
        if (auto problem = problem_of_scales(*task.params.lora, state.loras.size())) {
            return LaunchProblem{.message = std::move(*problem)};
        }
    }
    std::vector<AdapterScale> scales = wanted_scales(state.loras, task.params.lora);
    const bool keeps = keeps_prompt(state, slot, scales);
    auto request = std::make_unique<SlotRequest>();
    request->task = task;
    request->params = std::make_shared<const GenerationParams>(task.params);
    if (auto problem = find_invocation(state, task, scales, request->alora_start)) {
        return problem;
    }
    if (has_foreign_token(state, task)) {
        return LaunchProblem{.message = "Prompt contains invalid tokens; this model has the ids 0 to " +
                                        std::to_string(state.model.vocabulary->size() - 1)};
    }
    if (generates(task.kind)) {
        if (auto problem = make_sampler(state, *request)) {
            return problem;
        }
        request->limit = limit_of(state, task.params);
        request->output.emplace(*request->params, request->limit);
    }
    if (!keeps) {
        state.clear(slot);
    }
    slot.adapters = std::move(scales);
    slot.record.lora_key = key_of(state, slot.adapters);
    slot.request = std::move(request);
    slot.n_prompt_cached = 0;
    slot.n_prompt_processed = 0;
    slot.waited = 0;
    slot.state = task.parent >= 0 ? SlotState::wait_other : SlotState::started;
    state.log(log_info, "slot " + std::to_string(slot.id) + ": task " + std::to_string(task.id) +
                            " launched, " + std::to_string(task.tokens.size()) + " prompt tokens, at most " +
                            (slot.request->limit < 0 ? "unlimited" : std::to_string(slot.request->limit)) +
                            " new");
    return std::nullopt;
}

bool keeps_prompt(const DecodeState& state, const Slot& slot, const std::vector<AdapterScale>& wanted) {
    return keeps_cache(slot.adapters, wanted, activated_flags(state));
}

LoraKey key_of(const DecodeState& state, const std::vector<AdapterScale>& scales) {
    return lora_key(scales, activated_flags(state));
}

}  // namespace paddock
