#include "core/resident_model.h"

#include <utility>

#include "core/slot_view.h"

namespace paddock {

ResidentModel::ResidentModel(EngineParams params, std::unique_ptr<ModelHost> host, TaskQueue& tasks,
                             ResultQueue& results, EngineStatus& status)
    : params_(std::move(params)), host_(std::move(host)), tasks_(tasks), results_(results), status_(status) {}

void ResidentModel::load(const std::function<bool()>& is_cancelled) {
    loaded_ = std::make_unique<Loaded>(host_->load(params_, is_cancelled));
    try {
        take_in();
    } catch (...) {
        let_go();
        throw;
    }
    publish();
}

void ResidentModel::take_in() {
    const ContextFacts& facts = loaded_->context->facts();
    // Asked for and not possible means off, for everybody who reads the parameters (10 §3.6).
    params_.context_shift = params_.context_shift && facts.can_shift;
    restore_scales();
    if (cache_ == nullptr) {
        cache_ = std::make_unique<PromptCache>(params_.cache_ram_mib, facts.n_ctx);
    }
    DecodeState state(params_, *loaded_, results_, *cache_, metrics_,
                      [this](int level, const std::string& text) { log(level, text); });
    scheduler_ = std::make_unique<Scheduler>(std::move(state), tasks_, [this] { publish(); });
    const std::vector<DroppedType>& dropped = scheduler_->speculation().dropped;
    if (params_.speculation.strict && !dropped.empty()) {
        throw LoadError(dropped.front().reason, "drafting by " + dropped.front().type +
                                                    " does not run: " + dropped.front().reason +
                                                    "; --spec-strict refuses to go on");
    }
    status_.set_model(*loaded_);
}

void ResidentModel::put_to_sleep() {
    log(log_info, "falling asleep: the model leaves memory");
    scheduler_->save_prompts();
    let_go();
    if (!params_.sleep_keep_cache) {
        cache_.reset();
    }
}

void ResidentModel::let_go() {
    keep_scales();
    scheduler_.reset();
    status_.forget_vocabulary();
    loaded_.reset();
}

void ResidentModel::restore_scales() {
    for (LoraView& lora : loaded_->loras) {
        if (const auto kept = scales_.find(lora.id); kept != scales_.end()) {
            lora.scale = kept->second;
        }
    }
}

void ResidentModel::keep_scales() {
    if (!is_in_memory()) {
        return;
    }
    for (const LoraView& lora : scheduler_->state().loras) {
        scales_[lora.id] = lora.scale;
    }
}

void ResidentModel::publish() {
    Snapshot fresh;
    if (is_in_memory()) {
        const DecodeState& state = scheduler_->state();
        const Micros now = now_us();
        fresh.speculation = scheduler_->speculation();
        fresh.slots.reserve(state.slots.size());
        for (const Slot& slot : state.slots) {
            fresh.slots.push_back(view_of(slot, state.facts().n_ctx_slot, params_.slots_debug, now));
        }
        fresh.n_processing = static_cast<std::int32_t>(state.busy_slots());
        for (const Work& work : state.deferred) {
            fresh.n_deferred += static_cast<std::int32_t>(work.tasks.size());
        }
    } else {
        const auto before = status_.snapshot();
        fresh.slots = before->slots;
        fresh.speculation = before->speculation;
    }
    fresh.totals = metrics_.read(now_us());
    if (cache_ != nullptr) {
        fresh.prompt_cache_bytes = cache_->bytes();
        fresh.prompt_cache_entries = cache_->entries();
    }
    status_.publish(std::move(fresh));
}

void ResidentModel::enter(EngineState state) {
    status_.set_state(state);
    publish();
}

}  // namespace paddock
