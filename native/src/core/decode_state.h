// Everything that the decode thread works on; nobody else touches it (10 §1.3).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "core/model_host.h"
#include "core/params.h"
#include "core/prompt_cache.h"
#include "core/result_queue.h"
#include "core/slot.h"
#include "core/task_queue.h"

namespace paddock {

using LogLine = std::function<void(int level, const std::string& text)>;

/// Levels of log lines, as llama-server numbers them.
inline constexpr int log_error = 1;
inline constexpr int log_warning = 2;
inline constexpr int log_info = 3;
inline constexpr int log_debug = 5;

struct DecodeState {
    DecodeState(const EngineParams& engine_params, Loaded& loaded_model, ResultQueue& result_queue,
                PromptCache& prompt_cache, Metrics& engine_metrics, LogLine log_line);

    const EngineParams& params;
    Loaded& model;
    ResultQueue& results;
    PromptCache& cache;
    Metrics& metrics;
    LogLine log;

    std::vector<Slot> slots;
    /// The server's adapters with their scales (10 §19.1).
    std::vector<LoraView> loras;
    /// Works that no slot could take yet, oldest first (10 §4.5).
    std::deque<Work> deferred;

    Context& context() { return *model.context; }
    const ContextFacts& facts() const { return model.context->facts(); }
    std::int64_t busy_slots() const;

    /// The slot forgets its prompt: memory, tokens and checkpoints (10 §11.7).
    void clear(Slot& slot);
    /// Ends the request of a slot; the prompt stays for reuse (10 §5.3).
    void release(Slot& slot);
    /// Choices that wait for the prompt of this slot (10 §15).
    std::vector<Slot*> waiting_children(const Slot& parent);
    /// Error to the slot's task, then release; choices that wait for its prompt get the same.
    void fail(Slot& slot, ErrorKind kind, const std::string& message);
    void send_error(const Task& task, ErrorKind kind, const std::string& message);
};

}  // namespace paddock
