// One unit of work, immutable once it was submitted (10 §4.1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/sampling.h"
#include "core/speculation/speculation_params.h"
#include "core/types.h"

namespace paddock {

enum class TaskKind {
    completion,
    infill,
    embedding,
    rerank,
    slot_save,
    slot_restore,
    slot_erase,
    lora_get,
    lora_set,
    control,
    cancel,
};

inline bool generates(TaskKind kind) { return kind == TaskKind::completion || kind == TaskKind::infill; }

/// Everything a generating request may set; the HTTP side fills in the server's defaults.
struct GenerationParams {
    SamplingParams sampling;
    /// Tokens to generate; -1: no limit of its own. 0 ends right after the prompt (10 §16.8).
    std::int32_t n_predict = -1;
    /// Tokens kept by a context shift, negative: the whole prompt; and tokens it discards, 0: half (10 §9.2).
    std::int32_t n_keep = 0;
    std::int32_t n_discard = 0;
    std::int32_t n_indent = 0;
    /// Least run of equal tokens that is moved instead of evaluated; 0: off (10 §8.4).
    std::int32_t n_cache_reuse = 0;
    std::int64_t t_max_predict_ms = 0;
    bool cache_prompt = true;
    bool stream = false;
    bool return_tokens = false;
    bool return_progress = false;
    bool timings_per_token = false;
    bool post_sampling_probs = false;
    std::int32_t n_probs = 0;
    std::vector<std::string> stop;
    /// Scales by adapter id; none: the server's list (10 §19.2).
    std::optional<std::map<std::int32_t, float>> lora;
    SpeculationRequest speculation;
    LoopGuardParams loop_guard;
};

struct Task {
    TaskId id = 0;
    TaskKind kind = TaskKind::completion;
    /// Position of the input, or choice, within its HTTP request.
    std::int32_t index = 0;
    /// Which choice of its prompt it is; filled in when it is submitted. Seeds differ by it (10 §23.7).
    std::uint32_t choice = 0;
    std::vector<Token> tokens;
    GenerationParams params;
    /// -1: any slot. The slot of a slot action.
    std::int32_t id_slot = -1;
    /// Shared by all tasks of an HTTP request; what CONTROL names.
    std::string completion_id;
    /// Further choices of the same prompt, and the task they wait for (10 §15); -1: none.
    std::vector<TaskId> children;
    TaskId parent = -1;
    /// -1 none, 0 largest absolute value, 1 sum, 2 Euclidean, p > 2 the p-norm (10 §18.2).
    std::int32_t embd_normalize = 2;
    /// Slot files: the name as the client gave it and the whole path.
    std::string file_name;
    std::string file_path;
    std::map<std::int32_t, float> lora_scales;
    std::vector<TaskId> cancelled;
};

}  // namespace paddock
