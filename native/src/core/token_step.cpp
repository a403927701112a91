#include "core/token_step.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/embeddings.h"
#include "core/partials.h"
#include "core/prompt_fill.h"

namespace paddock {

namespace {

/// The score of a document that gave none (10 §18.3).
constexpr float no_score = -1e6F;

Result vector_result(const Slot& slot, ResultKind kind) {
    Result result;
    result.id = slot.request->task.id;
    result.kind = kind;
    result.index = slot.request->task.index;
    result.id_slot = slot.id;
    result.n_prompt_tokens = static_cast<std::int32_t>(slot.request->task.tokens.size());
    return result;
}

void send_embedding(DecodeState& state, Slot& slot) {
    Result result = vector_result(slot, ResultKind::embedding);
    if (state.facts().pooling == pooling_none) {
        result.embeddings = std::move(slot.request->row_embeddings);
    } else {
        const auto pooled = state.context().sequence_embedding(slot.id);
        result.embeddings.emplace_back(pooled.begin(), pooled.end());
        normalise(result.embeddings.back(), slot.request->task.embd_normalize);
    }
    const bool is_missing =
        result.embeddings.empty() ||
        std::ranges::any_of(result.embeddings, [](const auto& vector) { return vector.empty(); });
    if (is_missing) {
        // Zeros would silently spoil an index.
        state.fail(slot, ErrorKind::server, "The model gave no embedding for this input");
        return;
    }
    state.results.push(std::move(result));
    state.release(slot);
}

void send_score(DecodeState& state, Slot& slot) {
    Result result = vector_result(slot, ResultKind::rerank);
    auto scores = state.context().sequence_embedding(slot.id);
    if (scores.empty()) {
        scores = state.context().row_embedding(slot.window_row);
    }
    if (scores.empty()) {
        state.log(log_error, "slot " + std::to_string(slot.id) + ": the model gave no score");
    }
    result.score = scores.empty() ? no_score : scores.front();
    state.results.push(std::move(result));
    state.release(slot);
}

/// For lines about the guards (11 §19.11, §20.4).
std::string counts_of(const SlotRequest& request, std::int32_t n_decoded) {
    const LoopGuardReport& report = request.loop_guard.report();
    return ", " + std::to_string(n_decoded) + " tokens decoded, " + std::to_string(report.reasoning_tokens) +
           " of reasoning, " + std::to_string(report.visible_tokens) + " visible";
}

void begin_generation(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    const Micros now = now_us();
    slot.state = SlotState::generating;
    request.generation_start = now;
    request.prompt_us = std::max<Micros>(1, now - request.prompt_start);
    // A child's prompt was evaluated once, by its parent.
    if (request.task.parent < 0) {
        state.metrics.on_prompt(slot.n_prompt_processed, slot.n_prompt_cached, request.prompt_us, now);
    }
}

TextRegion region_of(const Sampler& sampler, bool is_end) {
    if (is_end || sampler.last_was_forced()) {
        return TextRegion::none;
    }
    return sampler.in_reasoning() ? TextRegion::reasoning : TextRegion::visible;
}

/// Closes the reasoning where it loops and that may be done (11 §19.8).
LoopAction answer_loop(DecodeState& state, Slot& slot, TextRegion region, std::int32_t n_decoded) {
    SlotRequest& request = *slot.request;
    const std::int32_t n_remaining = request.limit < 0 ? -1 : std::max(0, request.limit - n_decoded);
    if (!request.loop_guard.may_close(region, n_remaining, request.sampler->forced_count())) {
        return LoopAction::stop;
    }
    if (!request.sampler->force_end()) {
        state.log(log_warning, "slot " + std::to_string(slot.id) + ": its reasoning can't be ended now");
        return LoopAction::stop;
    }
    return LoopAction::force_close;
}

/// Whether the token, which the output doesn't have yet, completes a loop that ends the request.
bool ends_in_loop(DecodeState& state, Slot& slot, const TextOutput& output, Token token, TextRegion region) {
    LoopGuard& guard = slot.request->loop_guard;
    const std::optional<Loop> loop = guard.take(token, region);
    if (!loop.has_value()) {
        return false;
    }
    const std::int32_t n_decoded = output.n_decoded() + 1;
    const LoopAction action = answer_loop(state, slot, region, n_decoded);
    guard.act(*loop, action);
    state.metrics.on_loop(action, region);
    state.log(log_info, "slot " + std::to_string(slot.id) + ": loop in " +
                            (region == TextRegion::reasoning ? "reasoning" : "visible text") + ", " +
                            std::string(loop->kind()) + ", period " + std::to_string(loop->period) +
                            ", coverage " + std::to_string(loop->coverage) + ", score " +
                            std::to_string(loop->score) + ", action " + std::string(name_of(action)) +
                            counts_of(*slot.request, n_decoded));
    return action == LoopAction::stop;
}

/// Suspends drafting where a tool call comes as raw text (11 §20).
void watch_markers(DecodeState& state, Slot& slot, const TextOutput& output, std::size_t n_sent) {
    SlotRequest& request = *slot.request;
    const SamplingParams& sampling = request.params->sampling;
    const bool watches = sampling.grammar_lazy && !sampling.grammar_triggers.empty();
    // What blocks drafting under the strict policy alone is the grammar.
    const bool grammar_active =
        request.sampler->blocks_speculation(true) && !request.sampler->blocks_speculation(false);
    if (!request.tool_markers.feed(output.text(), n_sent, watches, grammar_active)) {
        return;
    }
    ++state.metrics.totals.speculation.suppressions;
    state.log(log_warning, "slot " + std::to_string(slot.id) + ": a raw tool call in " +
                               (request.sampler->in_reasoning() ? "reasoning" : "visible text") +
                               ", drafting is suspended" + counts_of(request, output.n_decoded()));
}

/// One more token of a generating slot.
void take_token(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    const auto logits = state.context().logits(slot.window_row);
    const Token token = request.sampler->sample(logits);
    request.sampler->accept(token, true);
    if (!emit_token(state, slot, token, logits)) {
        finish(state, slot);
    }
}

}  // namespace

void fan_out(DecodeState& state, Slot& parent) {
    for (Slot* child : state.waiting_children(parent)) {
        state.context().remove(child->id, 0, end_position);
        state.context().copy(parent.id, child->id, 0, end_position);
        child->record = parent.record;
        child->window_row = parent.window_row;
        child->n_prompt_cached = parent.n_prompt_cached;
        child->n_prompt_processed = parent.n_prompt_processed;
        child->request->prompt_start = parent.request->prompt_start;
        complete_prompt(state, *child);
    }
}

void step(DecodeState& state, Slot& slot) {
    if (slot.request->task.kind == TaskKind::embedding) {
        send_embedding(state, slot);
        return;
    }
    if (slot.request->task.kind == TaskKind::rerank) {
        send_score(state, slot);
        return;
    }
    if (slot.state == SlotState::done_prompt) {
        begin_generation(state, slot);
        if (slot.request->limit == 0) {
            finish(state, slot);
            return;
        }
    }
    try {
        take_token(state, slot);
    } catch (const std::exception& problem) {
        fail_choice(state, slot, problem);
    }
}

void fail_choice(DecodeState& state, Slot& slot, const std::exception& problem) {
    // The request asked for what can't be: a grammar that has ended, and no end.
    if (dynamic_cast<const std::invalid_argument*>(&problem) != nullptr) {
        state.fail(slot, ErrorKind::invalid_request, problem.what());
    } else {
        state.fail(slot, ErrorKind::server, std::string("No token could be chosen: ") + problem.what());
    }
}

bool emit_token(DecodeState& state, Slot& slot, Token token, std::span<const float> logits) {
    SlotRequest& request = *slot.request;
    // Only a request that generates text comes here, and each of those has it.
    if (!request.output.has_value()) {
        return false;
    }
    TextOutput& output = *request.output;
    const GenerationParams& params = *request.params;
    std::optional<TokenRecord> record;
    if (params.n_probs > 0) {
        record = request.sampler->record(logits, token, params.n_probs, params.post_sampling_probs);
    }
    const Vocabulary& vocabulary = *state.model.vocabulary;
    request.pending = token;
    const bool is_end = vocabulary.is_end(token);
    const bool shows_special = state.params.special || request.sampler->is_preserved(token);
    const std::string piece = vocabulary.piece(token, shows_special);
    const TextRegion region = region_of(*request.sampler, is_end);
    const std::size_t n_sent = output.n_sent();
    Emission emission = output.take(
        {.token = token,
         .piece = piece,
         .record = std::move(record),
         .is_end = is_end,
         .context_full = !state.params.context_shift && slot.n_tokens() + 1 >= state.facts().n_ctx_slot,
         .completes_loop = ends_in_loop(state, slot, output, token, region)},
        now_us(), request.generation_start);
    if (!output.ended()) {
        watch_markers(state, slot, output, n_sent);
    }
    send_partial(state, slot, std::move(emission));
    return !output.ended();
}

void finish(DecodeState& state, Slot& slot) {
    send_final(state, slot);
    state.release(slot);
}

}  // namespace paddock
