#include "core/launch.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/adapters.h"
#include "core/speculation/request_check.h"

namespace paddock {

namespace {

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

/// What a request says of drafting and of the loop guard (11 §18.2, §19.2).
std::optional<LaunchProblem> problem_of_guards(const DecodeState& state, const GenerationParams& params) {
    std::vector<std::string> problems = problems_of(params.speculation, state.params.speculation);
    std::ranges::move(problems_of(params.loop_guard), std::back_inserter(problems));
    if (problems.empty()) {
        return std::nullopt;
    }
    LaunchProblem problem;
    for (const std::string& each : problems) {
        problem.message += (problem.message.empty() ? "" : "; ") + each;
    }
    return problem;
}

/// A reasoning that has no end to force can be stopped, not closed (11 §19.9).
LoopGuard make_loop_guard(const DecodeState& state, const SlotRequest& request) {
    LoopGuardParams params = request.params->loop_guard;
    const ReasoningParams& reasoning = request.params->sampling.reasoning;
    const bool reasons = !reasoning.start_tag.empty() || !reasoning.end_tags.empty();
    if (params.mode == name_of(LoopAction::force_close) && reasons && request.sampler->forced_count() == 0) {
        state.log(log_warning, "task " + std::to_string(request.task.id) +
                                   ": reasoning of this request has no known end, so that a loop stops it");
        params.mode = name_of(LoopAction::stop);
    }
    return LoopGuard(params);
}

std::optional<LaunchProblem> make_sampler(const DecodeState& state, SlotRequest& request) {
    try {
        request.sampler = state.model.samplers->make(request.params->sampling, request.task.choice,
                                                     state.model.context->facts().n_ctx_slot);
    } catch (const std::exception& problem) {
        return LaunchProblem{.message = std::string("Failed to initialize samplers: ") + problem.what()};
    }
    return std::nullopt;
}

std::optional<LaunchProblem> prepare_generation(const DecodeState& state, SlotRequest& request) {
    if (auto problem = problem_of_guards(state, *request.params)) {
        return problem;
    }
    if (auto problem = make_sampler(state, request)) {
        return problem;
    }
    request.loop_guard = make_loop_guard(state, request);
    request.limit = limit_of(state, *request.params);
    request.output.emplace(*request.params, request.limit);
    return std::nullopt;
}

}  // namespace

std::variant<Prepared, LaunchProblem> prepare(const DecodeState& state, const Task& task) {
    if (task.params.lora.has_value()) {
        if (auto problem = problem_of_scales(*task.params.lora, state.loras.size())) {
            return LaunchProblem{.message = std::move(*problem)};
        }
    }
    Prepared prepared{.request = std::make_unique<SlotRequest>(),
                      .adapters = wanted_scales(state.loras, task.params.lora)};
    SlotRequest& request = *prepared.request;
    if (auto problem = find_invocation(state, task, prepared.adapters, request.alora_start)) {
        return *std::move(problem);
    }
    if (has_foreign_token(state, task)) {
        return LaunchProblem{.message = "Prompt contains invalid tokens; this model has the ids 0 to " +
                                        std::to_string(state.model.vocabulary->size() - 1)};
    }
    request.task = task;
    // The views of the slot share them; the task's own are not read again.
    request.params = std::make_shared<const GenerationParams>(std::move(request.task.params));
    if (generates(task.kind)) {
        if (auto problem = prepare_generation(state, request)) {
            return *std::move(problem);
        }
    }
    return prepared;
}

void launch(DecodeState& state, Slot& slot, Prepared prepared) {
    if (!keeps_prompt(state, slot, prepared.adapters)) {
        state.clear(slot);
    }
    slot.adapters = std::move(prepared.adapters);
    slot.record.lora_key = key_of(state, slot.adapters);
    slot.request = std::move(prepared.request);
    slot.n_prompt_cached = 0;
    slot.n_prompt_processed = 0;
    slot.waited = 0;
    const SlotRequest& request = *slot.request;
    slot.state = request.task.parent >= 0 ? SlotState::wait_other : SlotState::started;
    state.log(log_info, "slot " + std::to_string(slot.id) + ": task " + std::to_string(request.task.id) +
                            " launched, " + std::to_string(request.task.tokens.size()) +
                            " prompt tokens, at most " +
                            (request.limit < 0 ? "unlimited" : std::to_string(request.limit)) + " new");
}

bool keeps_prompt(const DecodeState& state, const Slot& slot, const std::vector<AdapterScale>& wanted) {
    return keeps_cache(slot.adapters, wanted, activated_flags(state));
}

LoraKey key_of(const DecodeState& state, const std::vector<AdapterScale>& scales) {
    return lora_key(scales, activated_flags(state));
}

}  // namespace paddock
