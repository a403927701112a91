// Adaptive depth (11 §15-17): how many tokens each slot may draft in a cycle, learnt from what cycles took
// and how many drafts were right. Used by the decode thread. Knows no clock: times come in as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/speculation/cost_model.h"
#include "core/speculation/depth_decision.h"
#include "core/speculation/depth_state.h"
#include "core/speculation/draft_type.h"
#include "core/speculation/speculation_params.h"
#include "core/types.h"

namespace paddock {

class DepthControl {
  public:
    using Log = std::function<void(const std::string&)>;
    /// In the order up, down, off, on; of `profit`, then of `fringe`.
    using Changes = std::array<std::array<std::int64_t, 4>, 2>;

    struct Cycle {
        /// All rows were the generating slots', nothing failed, nothing was decoded twice.
        bool is_pure = false;
        std::int32_t rows = 0;
        double model_ms = 0.0;  // verify, accept and other
        double draft_ms = 0.0;
        /// Slots that had a draft verified.
        std::int32_t n_drafting = 0;
        /// Of the drafters that were asked; what they made may have been cut, or left out as a whole.
        std::vector<DraftWork> works{};
        std::int64_t n_memory_tokens = 0;
    };

    /// What a drafter that was asked found for a slot in this cycle.
    struct Found {
        SequenceId slot = 0;
        /// 0: nothing.
        std::int32_t size = 0;
        /// It is used whole or not at all.
        bool is_whole = false;
    };

    struct View {
        std::int32_t depth = 0;
        std::int32_t base = 0;
        const char* state = "unset";  // unset off warmup probe on
        double fringe = 0.0;
        double score = 0.0;
        double gain = 0.0;
    };

    /// `log`, when set, gets a line for each change of a depth (11 §15.7).
    DepthControl(const DepthParams& params, std::int32_t n_slots, Log log = {});

    /// A request starts in `slot` that may draft with `type`. What was learnt stays with `keep` (10 §6.5)
    /// when it was learnt under the same setting.
    void begin(SequenceId slot, DraftType type, const DepthSetting& setting, bool keep);
    /// Forgets what was learnt in the slot: cancel, restore, change of adapters.
    void reset(SequenceId slot);
    /// The request ended; what was learnt stays.
    void end(SequenceId slot);
    /// The model woke: what cycles cost is learnt anew (11 §17.11).
    void forget_costs();

    /// A cycle starts in which the slots `generating` have a row each.
    void start_cycle(std::span<const SequenceId> generating, std::int64_t n_memory_tokens);
    /// Then no slot drafts and no prompt rows are added.
    bool is_baseline_probe() const { return is_baseline_probe_; }
    /// Tokens that the slot may draft. With `advance` the cycle counts; without, nothing changes.
    std::int32_t cap(SequenceId slot, DraftType type, bool advance);
    /// Sets `size` of each draft of one drafter to what pays in this cycle, 0 where none does: a depth is
    /// what pays while all slots draft, and the fewer find a draft, the dearer is each row of it. Trials stay
    /// whole.
    void shorten(std::span<Found> drafts, DraftType type);
    /// Outcome of a flat draft, in the words of 11 §14.2.
    void on_verified(SequenceId slot, DraftType type, std::int32_t n_drafted, std::int32_t n_accepted,
                     std::int32_t n_examined, std::int32_t n_covered);
    /// Whether drafts of the slot, which is off, are worth a look-up: what they would have said is compared
    /// with what is generated, which costs no row.
    bool wants_look(SequenceId slot, DraftType type) const;
    /// Whether the drafter found something, be it to verify or to compare.
    void on_look(SequenceId slot, DraftType type, bool is_found);
    /// A draft that was not verified, or not as a whole, was compared with what was generated then; of what
    /// was examined the first `n_told` tokens are known from before.
    void on_compared(SequenceId slot, DraftType type, std::int32_t n_told, std::int32_t n_accepted,
                     std::int32_t n_examined);
    /// Rows and accepted tokens of side chains, besides those of the flat draft that was told before.
    void add_side_chains(SequenceId slot, std::int32_t n_rows, std::int32_t n_accepted);
    /// A cycle of `rows` rows of prompts alone took `ms`.
    void on_prompt(std::int32_t rows, double ms) { model_.add_prompt(rows, ms); }
    void end_cycle(const Cycle& cycle);

    View view(SequenceId slot, DraftType type) const;
    const Changes& changes() const { return changes_; }
    std::int64_t n_baseline_probes() const { return n_baseline_probes_; }

  private:
    static constexpr std::size_t n_types = draft_type_names.size();

    /// A slot with one drafter.
    struct Lane {
        DepthState state;
        /// Share of the asked cycles in which there was something to draft.
        double found = 1.0;
        /// Drafting was possible in the last cycle that was no baseline probe.
        bool is_asked = false;
        bool may_probe = false;
        bool is_probing = false;
        /// Of this cycle: it may draft deeper than is known to pay; less is used of its draft than there was.
        bool is_trial = false;
        bool is_shortened = false;
        /// Its next draft is left whole, to see what all of it is worth, where the time for trials allows it.
        bool is_look_due = false;
    };
    struct Slot {
        std::array<Lane, n_types> lanes;
        /// The drafter that the slot was last asked for, one with a draft first.
        DraftType type = DraftType::draft_simple;
        bool is_type_known = false;
        bool is_generating = false;
        std::int32_t drafted = 0;   // in this cycle
        std::int32_t accepted = 0;  // in this cycle
        /// Draft tokens that this cycle will verify, and how many of them are likely right.
        std::int32_t taken = 0;
        double hoped = 0.0;
        /// Means of a cycle.
        double rows = 1.0;
        double tokens = 1.0;
        /// Of the last decision.
        double score = 0.0;
        double gain = 0.0;
    };
    /// A slot that drafts deeper than is known to pay.
    struct Trial {
        SequenceId slot = 0;
        std::int32_t depth = 0;
        /// Draft tokens that were right, once that is known.
        std::optional<std::int32_t> accepted = std::nullopt;
    };
    /// Slots whose depths are chosen together, and what the choice is made from.
    struct Group {
        std::vector<SequenceId> slots;
        std::vector<double> gains;
        std::vector<PlanSlot> plan_slots;
        std::vector<double> cycle_ms;
        PlanCosts costs;
    };

    Slot* slot_at(SequenceId slot);
    const Slot* slot_at(SequenceId slot) const;
    Lane& lane_of(SequenceId slot, DraftType type);
    bool is_member(const Slot& slot, DraftType type) const;
    bool is_baseline_due() const;
    void plan_probes(DraftType type);
    std::optional<double> trial_loss_ms(std::span<const Trial> trials, DraftType type) const;
    bool may_try(std::span<const Trial> trials, DraftType type);
    void settle_trials();
    void fill_gains(const DepthState& state, DraftType type, std::span<double> gains) const;
    void fill_group(Group& group, DraftType type);
    void add_fixed(Group& group, DraftType type, std::int32_t& rows) const;
    void set_taken(Found& draft, DraftType type, std::int32_t size);
    void take_looks(std::span<Found* const> drafts, DraftType type, const PlanCosts& costs,
                    std::span<const PlanSlot> slots, std::vector<std::int32_t>& depths);
    void decide(DraftType type);
    void judge_probes(DraftType type);
    void learn(Lane& lane, DraftType type, std::int32_t n_told, std::int32_t n_accepted,
               std::int32_t n_examined);
    void add_means();
    void change_depth(SequenceId slot, DraftType type, std::int32_t depth, double score);

    DepthParams params_;
    Log log_;
    CostModel model_;
    std::vector<Slot> slots_;
    std::vector<SequenceId> generating_;
    std::int64_t n_memory_tokens_ = 0;
    /// Milliseconds of a cycle in which these slots draft nothing, as far as it is known.
    std::optional<double> baseline_ms_;
    bool is_baseline_probe_ = false;
    std::int64_t n_drafting_cycles_ = 0;
    std::int64_t last_probe_cycle_ = -1;  // in drafting cycles
    /// For each number of generating slots the drafting cycles before its last cycle without drafts; -1:
    /// none.
    std::vector<std::int64_t> last_undrafted_;
    std::array<std::int32_t, n_types> off_dwells_{};
    /// What drafts of a type were worth in all slots, for those that know nothing of their own yet.
    std::array<AcceptanceTable, n_types> outlooks_;
    /// How often there was something to draft, in the same sense.
    std::array<double, n_types> finds_;
    /// Time that trials may take from the slots: drafts deeper than what is known to pay.
    double trial_ms_ = 0.0;
    double most_trial_ms_ = 0.0;
    /// Of this cycle, with the time that was taken for them before they were made.
    struct Trials {
        std::vector<Trial> slots;
        double paid_ms = 0.0;
    };
    std::array<Trials, n_types> trials_;
    /// Of this cycle, and of the last decision.
    bool has_changed_ = false;
    double last_gain_ = 0.0;
    Changes changes_{};
    std::int64_t n_baseline_probes_ = 0;
    Group group_;
};

}  // namespace paddock
