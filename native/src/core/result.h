// What a task gives back. Values only: they cross from the decode thread to the HTTP side (10 §1.5).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sampling.h"
#include "core/speculation/report.h"
#include "core/types.h"

namespace paddock {

enum class ResultKind {
    partial,
    final,
    embedding,
    rerank,
    slot_save,
    slot_restore,
    slot_erase,
    lora,
    ok,
    error
};
enum class ErrorKind { invalid_request, not_found, server, not_supported, unavailable, exceed_context_size };
enum class StopKind { none, eos, word, limit };

/// 10 §5.5. Milliseconds; a ratio with nothing below the line is 0.
struct Timings {
    std::int32_t cache_n = 0;
    std::int32_t prompt_n = 0;
    double prompt_ms = 0.0;
    double prompt_per_token_ms = 0.0;
    double prompt_per_second = 0.0;
    std::int32_t predicted_n = 0;
    double predicted_ms = 0.0;
    double predicted_per_token_ms = 0.0;
    double predicted_per_second = 0.0;
};

/// Of `return_progress` (10 §8.10).
struct PromptProgress {
    std::int32_t total = 0;
    std::int32_t cache = 0;
    std::int32_t processed = 0;
    std::int64_t time_ms = 0;
};

struct LoraView {
    std::int32_t id = 0;
    std::string path;
    float scale = 0.0F;
    std::string task_name;
    std::string prompt_prefix;
    std::string invocation_text;
    std::vector<Token> invocation_tokens;
};

struct Result {
    TaskId id = 0;
    ResultKind kind = ResultKind::partial;
    std::int32_t index = 0;
    std::int32_t id_slot = -1;

    // partial and final
    std::string text;
    std::vector<Token> tokens;
    std::vector<TokenRecord> records;
    std::int32_t n_decoded = 0;
    std::int32_t n_prompt_tokens = 0;
    std::int32_t n_prompt_cached = 0;
    bool has_timings = false;
    Timings timings;
    bool is_progress = false;
    PromptProgress progress;

    // final
    bool truncated = false;
    bool has_new_line = false;
    StopKind stop = StopKind::none;
    /// Empty, or why a limit was one: context_full token_limit loop_guard indent_limit time_limit (10
    /// §16.13).
    std::string stop_detail;
    std::string stopping_word;
    /// Length of the slot's token list at the end.
    std::int32_t n_tokens_cached = 0;
    std::int32_t n_reasoning_tokens = 0;
    SpeculationReport speculation;
    LoopGuardReport loop_guard;

    // embedding and rerank
    std::vector<std::vector<float>> embeddings;
    float score = 0.0F;

    // slot actions
    std::int64_t n_slot_tokens = 0;
    std::int64_t n_bytes = 0;
    double action_ms = 0.0;

    // lora, control
    std::vector<LoraView> loras;
    bool success = false;

    // error; `text` holds the message
    ErrorKind error = ErrorKind::server;
    std::int32_t n_ctx = 0;

    bool is_last() const { return kind != ResultKind::partial; }
};

}  // namespace paddock
