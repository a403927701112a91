// One lane of the engine: what it remembers of its last prompt, and the request that it serves (10 §5).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/context.h"
#include "core/prompt_record.h"
#include "core/sampling.h"
#include "core/snapshot.h"
#include "core/speculation/draft.h"
#include "core/speculation/loop_guard.h"
#include "core/speculation/report.h"
#include "core/speculation/tool_markers.h"
#include "core/task.h"
#include "core/text_output.h"

namespace paddock {

/// Row that a slot waits for, or none.
inline constexpr std::int32_t no_row = -1;

/// The request of a busy slot; gone when the slot is released.
struct SlotRequest {
    /// Without its parameters: they are the next field, shared with the views that show them.
    Task task;
    std::shared_ptr<const GenerationParams> params;
    std::unique_ptr<Sampler> sampler;
    std::optional<TextOutput> output;
    /// Tokens to generate; -1: unlimited.
    std::int32_t limit = -1;
    /// Newest token, not in memory yet; valid while generating.
    Token pending = 0;
    /// It goes on with the text of its slot: what was learnt of drafting there holds (10 §6.5).
    bool continues_text = false;
    /// Where an activated adapter starts; -1: nowhere (10 §19.5).
    std::int32_t alora_start = -1;
    /// Tokens that have to come back into memory before the slot goes on; empty unless refilling (10 §14.7).
    std::vector<Token> refill;
    std::int32_t n_refills = 0;
    std::vector<std::vector<float>> row_embeddings;
    bool was_shifted = false;
    /// They see each generated token; the guard counts them, too.
    LoopGuard loop_guard;
    ToolMarkerDetector tool_markers;

    /// What drafting did for it so far.
    SpeculationReport speculation;
    /// Of the cycle: tokens drafted behind the pending one, and the rows of both within the window.
    Draft draft;
    std::vector<std::int32_t> verify_rows;
    /// The draft may not be judged by a part of its rows (11 §11.1).
    bool takes_whole_rows = false;
    /// State from before the rows of the draft, where memory can't be cut, and the tokens that it stands for.
    std::vector<std::byte> saved_state;
    std::int32_t n_saved_tokens = 0;

    bool has_ended() const { return output.has_value() && output->ended(); }

    Micros prompt_start = 0;
    Micros generation_start = 0;
    Micros prompt_us = 0;
};

struct Slot {
    SequenceId id = 0;
    SlotState state = SlotState::idle;

    // Kept across requests.
    PromptRecord record;
    /// Wanted scales of the last launch, adapters with a scale of 0 included.
    std::vector<AdapterScale> adapters;
    /// -1: never.
    Micros last_used = -1;
    /// What was learnt of drafting in it is void: its request was cancelled, or another text restored.
    bool is_drafting_stale = false;
    /// What readers see of the last request after it is gone (10 §5.4).
    SlotView last_view;

    std::unique_ptr<SlotRequest> request;
    std::int32_t n_prompt_cached = 0;
    std::int32_t n_prompt_processed = 0;

    // Of the cycle.
    /// Rows of this slot that are in the batch and not decoded yet.
    std::int32_t rows_in_batch = 0;
    /// Its memory was lost in this cycle, and the rest of its rows are void.
    bool drops_rows = false;
    /// Index of its output row within the window that was decoded last.
    std::int32_t window_row = no_row;
    /// Cycles that its group has waited (10 §12.2).
    std::int64_t waited = 0;

    bool is_idle() const { return state == SlotState::idle; }
    std::int32_t n_tokens() const { return static_cast<std::int32_t>(record.tokens.size()); }
    /// Whether it has prompt rows to put into a batch.
    bool is_filling() const {
        return state == SlotState::started || state == SlotState::processing_prompt ||
               state == SlotState::refill;
    }
    bool embeds() const {
        return request->task.kind == TaskKind::embedding || request->task.kind == TaskKind::rerank;
    }
    bool samples() const { return !embeds(); }
};

}  // namespace paddock
