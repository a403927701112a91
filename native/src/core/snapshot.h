// What readers see without asking the decode thread (10 §24.4).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/types.h"

namespace paddock {

enum class EngineState { fresh, loading, ready, sleeping, waking, failed, stopped };
enum class SlotState { idle, wait_other, started, processing_prompt, done_prompt, generating, refill };

struct SlotView {
    std::int32_t id = 0;
    std::int32_t n_ctx = 0;
    SlotState state = SlotState::idle;
    /// Milliseconds since the slot was used; -1: never.
    std::int64_t idle_ms = -1;
    std::int32_t n_cached_tokens = 0;
    std::int32_t n_checkpoints = 0;
    /// False until its first task; the fields below are the last task's.
    bool was_used = false;
    TaskId id_task = -1;
    std::int32_t n_prompt_tokens = 0;
    std::int32_t n_prompt_processed = 0;
    std::int32_t n_prompt_cached = 0;
    bool has_next_token = false;
    bool has_new_line = false;
    /// -1: unlimited.
    std::int32_t n_remaining = -1;
    std::int32_t n_decoded = 0;
    Timings timings;
    /// Shared with the task, since a view is published every cycle; null until the first task.
    std::shared_ptr<const GenerationParams> params;
    /// With the slots debug switch only.
    std::vector<Token> prompt_tokens;
    std::string generated;
    SpeculationReport speculation;
    LoopGuardReport loop_guard;
};

/// 10 §24.1-24.3. Counts since the start; times in microseconds.
struct Totals {
    std::int64_t prompt_tokens = 0;
    std::int64_t prompt_tokens_cached = 0;
    Micros prompt_us = 0;
    std::int64_t predicted_tokens = 0;
    Micros predicted_us = 0;
    std::int64_t n_decode = 0;
    std::map<std::int32_t, std::int64_t> decode_failures;
    std::int64_t n_tokens_max = 0;
    std::int64_t busy_slots = 0;
    std::int64_t refills = 0;
    std::int64_t checkpoints_created = 0;
    std::int64_t checkpoints_restored = 0;
    std::int64_t checkpoints_evicted = 0;
    /// Tokens a second over the last 60 s.
    double prompt_rate = 0.0;
    double predicted_rate = 0.0;
    SpeculationTotals speculation;
};

struct Snapshot {
    EngineState state = EngineState::fresh;
    std::vector<SlotView> slots;
    Totals totals;
    std::int32_t n_processing = 0;
    std::int32_t n_deferred = 0;
    std::int64_t prompt_cache_bytes = 0;
    std::int32_t prompt_cache_entries = 0;
    SpeculationFacts speculation;
};

}  // namespace paddock
