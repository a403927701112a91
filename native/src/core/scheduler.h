// The cycle of the decode thread: dispatch, rows, windows, snapshot (10 §12).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/batch.h"
#include "core/decode_state.h"
#include "core/speculation/speculator.h"
#include "core/task_queue.h"
#include "core/window_decoder.h"

namespace paddock {

class Scheduler {
  public:
    /// `publish` is called with every change that readers should see.
    Scheduler(DecodeState state, TaskQueue& tasks, std::function<void()> publish);
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// One cycle. False when there was nothing to decode.
    bool cycle();

    /// The device is gone; every task got its error (10 §14.8).
    bool is_lost() const { return windows_.is_lost(); }

    /// Prompts of all slots go to the RAM cache before the model leaves memory (10 §21.2).
    void save_prompts();
    /// Error to everything that runs or waits.
    void fail_all(ErrorKind kind, const std::string& message);

    DecodeState& state() { return state_; }
    const SpeculationFacts& speculation() const { return speculator_.facts(); }

  private:
    /// Slots that may share a batch (10 §12.2).
    struct Group {
        bool embeds = false;
        std::vector<AdapterScale> adapters;
        bool operator==(const Group&) const = default;
    };

    void take_tasks();
    void shift_full_slots();
    std::vector<Slot*> choose_group();
    Group group_of(const Slot& slot) const;
    void add_generation_rows(const std::vector<Slot*>& members);
    void add_prompt_rows(const std::vector<Slot*>& members);
    void apply_settings(const Group& group);
    void on_empty_cycle();

    DecodeState state_;
    TaskQueue& tasks_;
    std::function<void()> publish_;
    Speculator speculator_;
    WindowDecoder windows_;
    Batch batch_;
    std::int32_t empty_cycles_ = 0;
    bool embeddings_on_ = false;
    std::vector<AdapterScale> adapters_on_;
};

}  // namespace paddock
