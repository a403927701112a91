// Drafting within the cycle of the scheduler: who drafts how much, and what of it stands (11 §3-4, §8-10).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/decode_state.h"
#include "core/speculation/depth_control.h"
#include "core/speculation/drafter_set.h"
#include "core/speculation/reduced_verification.h"
#include "core/speculation/report.h"
#include "core/speculation/rollback.h"
#include "core/speculation/shadow_draft.h"
#include "core/speculation/tree_drafting.h"
#include "core/speculation/verification.h"

namespace paddock {

/// How long the parts of a cycle took, and what it consisted of.
struct CycleWork {
    Micros total_us = 0;
    Micros decode_us = 0;
    std::int32_t n_rows = 0;
    /// Rows of generating slots only, decoded at once and without trouble.
    bool is_pure = false;
    /// Rows of prompts only, in the same sense.
    bool is_prompt = false;
};

/// Used by the decode thread, apart from what it tells at its making.
class Speculator {
  public:
    explicit Speculator(DecodeState& state);

    const SpeculationFacts& facts() const { return drafters_.facts(); }
    TreeDrafting& trees() { return trees_; }

    /// Leaves a draft, or none, with each generating slot of `members`.
    void draft(const std::vector<Slot*>& members);
    /// False in a cycle that measures how fast the model is without drafts (11 §17.5).
    bool wants_prompts() const { return !is_probe_; }
    /// Decides how the drafts of a window of `n_rows` are judged; before the first `verify` of it.
    void open_window(std::int32_t n_rows) { reduced_.open_window(state_, asked_mode_, n_rows); }
    /// Takes the rows of a slot's draft, `slot.request->verify_rows`. `settle` has to follow.
    void verify(Slot& slot);
    /// Memory of the slots that were verified becomes what their lists say, and requests that have ended are
    /// released. Once nobody needs the rows of the window any more: it may decode.
    void settle();
    /// The rows of a cycle are done.
    void end_cycle(const CycleWork& work);

  private:
    /// What a slot's drafters know it by.
    struct Known {
        TaskId task = -1;
        std::int32_t n_tokens = 0;
        LoraKey lora_key;
    };
    /// A slot whose memory holds the rows of a draft.
    struct Unsettled {
        SequenceId slot = 0;
        TaskId task = -1;
        std::int32_t n_in_memory = 0;
        std::optional<BranchRange> kept_branch = std::nullopt;
    };

    void meet(Slot& slot);
    void prepare(Slot& slot);
    bool is_wanted(const SpeculationRequest& request, const DrafterSet::Member& runner) const;
    DepthSetting setting_of(const Slot& slot, const DrafterSet::Member& runner) const;
    const char* obstacle(Slot& slot);
    std::int32_t room_for(const Slot& slot, DraftType type, std::int32_t cap, std::int32_t n_min,
                          std::int32_t n_reserved, std::int32_t n_others) const;
    void ask(DrafterSet::Member& runner, std::vector<Slot*>& open);
    std::vector<bool> shorten(DraftType type, std::span<const DraftRequest> requests,
                              std::span<Draft> drafts);
    DraftRequest request_of(Slot& slot, const DepthSetting& setting, std::int32_t limit) const;
    bool take(Slot& slot, const DrafterSet::Member& runner, Draft draft, const DraftRequest& asked);
    void count(Slot& slot, const Draft& draft, VerifyMode mode, const Verified& verified);
    void describe(Slot& slot);
    /// Longest draft that is looked up to be compared, 0: none.
    static std::int32_t whole_limit(const DepthSetting& setting, const DraftRequest& request, DraftType type);
    /// Drafts within their limits, and their tokens within the other ones.
    static std::pair<std::vector<Draft>, std::vector<std::vector<Token>>> draft_whole(
        DrafterSet::Member& runner, std::span<const DraftRequest> requests,
        std::span<const std::int32_t> limits);
    ShadowDraft& shadow_of(const Slot& slot, DraftType type);
    void close_shadows(const Slot& slot);
    void compare_shadows(const Slot& slot);
    void watch(DrafterSet::Member& runner, std::span<Slot* const> off);

    DecodeState& state_;
    RollbackRoute route_;
    DrafterSet drafters_;
    TreeDrafting trees_;
    VerifyMode asked_mode_;
    ReducedVerification reduced_;
    DepthControl control_;
    /// Counts outlive sleep, a controller does not.
    SpeculationTotals totals_before_;
    std::vector<Known> known_;
    /// By slot and drafter.
    std::vector<std::array<ShadowDraft, draft_type_names.size()>> shadows_;

    // Of the cycle.
    std::vector<Unsettled> unsettled_;
    bool is_probe_ = false;
    std::int32_t n_generating_ = 0;
    Micros draft_us_ = 0;
    Micros accept_us_ = 0;
    std::int32_t n_drafting_ = 0;
    std::vector<DraftWork> works_;
    std::int64_t n_memory_tokens_ = 0;
};

}  // namespace paddock
