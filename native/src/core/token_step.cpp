#include "core/token_step.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/embeddings.h"
#include "core/partials.h"
#include "core/prompt_fill.h"

namespace paddock {

namespace {

constexpr std::int32_t pooling_none = 0;
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

void finish(DecodeState& state, Slot& slot) {
    send_final(state, slot);
    state.release(slot);
}

/// One more token of a generating slot.
void take_token(DecodeState& state, Slot& slot) {
    SlotRequest& request = *slot.request;
    // Only a request that generates text comes here, and each of those has it.
    if (!request.output.has_value()) {
        return;
    }
    TextOutput& output = *request.output;
    const GenerationParams& params = *request.params;
    const auto logits = state.context().logits(slot.window_row);
    const Token token = request.sampler->sample(logits);
    request.sampler->accept(token, true);
    std::optional<TokenRecord> record;
    if (params.n_probs > 0) {
        record = request.sampler->record(logits, token, params.n_probs, params.post_sampling_probs);
    }
    request.n_reasoning_tokens += request.sampler->in_reasoning() ? 1 : 0;
    request.pending = token;
    const Vocabulary& vocabulary = *state.model.vocabulary;
    const bool shows_special = state.params.special || request.sampler->is_preserved(token);
    const bool is_full = !state.params.context_shift && slot.n_tokens() + 1 >= state.facts().n_ctx_slot;
    Emission emission = output.take(token, vocabulary.piece(token, shows_special), vocabulary.is_end(token),
                                    std::move(record), is_full, now_us(), request.generation_start);
    send_partial(state, slot, std::move(emission));
    if (output.ended()) {
        finish(state, slot);
    }
}

}  // namespace

void fan_out(DecodeState& state, Slot& parent) {
    for (Slot* child : state.waiting_children(parent)) {
        state.context().remove(child->id, 0, end_position);
        state.context().copy(parent.id, child->id);
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
    } catch (const std::invalid_argument& problem) {
        // The request asked for what can't be: a grammar that has ended, and no end.
        state.fail(slot, ErrorKind::invalid_request, problem.what());
    } catch (const std::exception& problem) {
        state.fail(slot, ErrorKind::server, std::string("No token could be chosen: ") + problem.what());
    }
}

}  // namespace paddock
