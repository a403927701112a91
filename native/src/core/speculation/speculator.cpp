#include "core/speculation/speculator.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/speculation/draft_counts.h"
#include "core/speculation/draft_limit.h"
#include "core/speculation/draft_log.h"
#include "core/speculation/draft_setting.h"
#include "core/speculation/tree_verification.h"
#include "core/token_step.h"

namespace paddock {

namespace {
/// Bits of a random start that a number in [0, 1) gives.
constexpr double seed_range = 9007199254740992.0;

namespace idle {
constexpr const char* off = "off";
constexpr const char* baseline_probe = "baseline-probe";
constexpr const char* blocked_sampler = "blocked-sampler";
constexpr const char* tool_marker = "tool-marker";
constexpr const char* no_room = "no-room";
constexpr const char* empty_draft = "empty-draft";
constexpr const char* below_n_min = "below-n-min";
constexpr const char* baseline = "baseline";
constexpr const char* cycle_cost = "cycle-cost";
}  // namespace idle

}  // namespace

Speculator::Speculator(DecodeState& state)
    : state_(state),
      route_(rollback_route(state.facts())),
      drafters_(state, route_),
      trees_(state, drafters_.facts().tree_reason),
      asked_mode_(verify_mode_of(state.params.speculation.verify)),
      reduced_(state.params.speculation, facts().reduced_path),
      control_(state.params.speculation.depth, static_cast<std::int32_t>(state.slots.size()),
               [&state](const std::string& line) { state.log(log_debug, line); }),
      totals_before_(state.metrics.totals.speculation),
      known_(state.slots.size()),
      shadows_(state.slots.size()) {
    for (Slot& slot : state_.slots) {
        slot.last_view.speculation.types = facts().types;
        slot.last_view.speculation.fallback_reason = facts().fallback_reason;
        slot.last_view.speculation.reduced = reduced_.at_start();
    }
}

void Speculator::draft(const std::vector<Slot*>& members) {
    const Micros begun = now_us();
    draft_us_ = accept_us_ = 0;
    n_drafting_ = 0;
    works_.clear();
    n_memory_tokens_ = 0;
    n_generating_ = 0;
    is_probe_ = false;
    trees_.start_cycle();
    std::vector<Slot*> open;
    std::vector<SequenceId> generating;
    for (Slot* slot : members) {
        if (slot->state != SlotState::generating || !slot->request->output.has_value()) {
            continue;
        }
        meet(*slot);
        n_memory_tokens_ += slot->n_tokens();
        slot->request->draft = {};
        slot->request->verify_rows.clear();
        const char* why_not = obstacle(*slot);
        slot->request->speculation.idle_reason = why_not;
        if (*why_not == '\0') {
            open.push_back(slot);
        }
        generating.push_back(slot->id);
    }
    if (drafters_.empty() || generating.empty()) {
        return;
    }
    n_generating_ = static_cast<std::int32_t>(generating.size());
    control_.start_cycle(generating, n_memory_tokens_);
    is_probe_ = control_.is_baseline_probe();
    for (Slot* slot : open) {
        slot->request->speculation.idle_reason = is_probe_ ? idle::baseline_probe : idle::baseline;
    }
    if (!is_probe_) {
        for (DrafterSet::Member& runner : drafters_.members()) {
            if (!open.empty()) {
                ask(runner, open);
            }
        }
        drafters_.drop_unusable();
    }
    draft_us_ = now_us() - begun;
}

/// Drafters hear of a new request, and of a list that was cut (11 §4.3).
void Speculator::meet(Slot& slot) {
    Known& known = known_[static_cast<std::size_t>(slot.id)];
    const bool is_new = known.task != slot.request->task.id;
    if (is_new) {
        prepare(slot);
    }
    if (is_new || slot.n_tokens() < known.n_tokens) {
        for (DrafterSet::Member& runner : drafters_.members()) {
            runner.drafter->begin(slot.id, slot.record.tokens);
        }
        close_shadows(slot);
    }
    compare_shadows(slot);
    known.task = slot.request->task.id;
    known.n_tokens = slot.n_tokens();
}

void Speculator::prepare(Slot& slot) {
    Known& known = known_[static_cast<std::size_t>(slot.id)];
    SlotRequest& request = *slot.request;
    SpeculationReport& report = request.speculation;
    report.fallback_reason = facts().fallback_reason;
    report.reduced = reduced_.at_start();
    report.tree_reason = trees_.reason();
    const bool is_stale = std::exchange(slot.is_drafting_stale, false);
    if (is_stale || known.lora_key != slot.record.lora_key) {
        control_.reset(slot.id);
        known.lora_key = slot.record.lora_key;
    }
    for (const DrafterSet::Member& runner : drafters_.members()) {
        if (!is_wanted(request.params->speculation, runner)) {
            continue;
        }
        report.types.push_back(runner.name);
        control_.begin(slot.id, runner.drafter->type(), setting_of(slot, runner), request.continues_text);
    }
    const auto& asked = request.params->speculation.type;
    if (report.types.empty() && asked.has_value()) {
        const auto dropped = std::ranges::find(facts().dropped, *asked, &DroppedType::type);
        report.fallback_reason = *asked == "none"                   ? "none-requested"
                                 : dropped != facts().dropped.end() ? dropped->reason
                                                                    : "type-not-built";
    }
    report.verify_mode = report.types.empty() ? "" : name_of(asked_mode_);
}

bool Speculator::is_wanted(const SpeculationRequest& request, const DrafterSet::Member& runner) const {
    return !request.type.has_value() || *request.type == runner.name;
}

DepthSetting Speculator::setting_of(const Slot& slot, const DrafterSet::Member& runner) const {
    return draft_setting(*slot.request, *runner.drafter, state_.params.speculation, asked_mode_);
}

/// Why the slot can't draft in this cycle, or nothing.
const char* Speculator::obstacle(Slot& slot) {
    SlotRequest& request = *slot.request;
    if (request.speculation.types.empty()) {
        return idle::off;
    }
    request.speculation.suppressed = request.tool_markers.is_suppressing();
    if (request.speculation.suppressed) {
        return idle::tool_marker;
    }
    if (request.sampler->blocks_speculation(state_.params.speculation.grammar_blocks)) {
        return idle::blocked_sampler;
    }
    return "";
}

std::int32_t Speculator::room_for(const Slot& slot, DraftType type, std::int32_t cap, std::int32_t n_min,
                                  std::int32_t n_reserved, std::int32_t n_others) const {
    const SlotRequest& request = *slot.request;
    const ContextFacts& facts = state_.facts();
    DraftRoom room{.n_ctx = facts.n_ctx_slot,
                   .n_tokens = slot.n_tokens(),
                   .remaining = std::nullopt,
                   .n_batch = facts.n_batch,
                   .n_ubatch = facts.n_ubatch,
                   .n_rs_seq = std::nullopt,
                   .batch_rows_left = facts.n_batch - n_reserved,
                   .n_unplaced = n_others};
    // Those from the text are longer than copies of a state are many, and go back by decoding again.
    if (route_ == RollbackRoute::snapshot && is_model_drafter(type)) {
        room.n_rs_seq = facts.n_rs_seq;
    }
    if (request.limit >= 0 && request.output.has_value()) {
        room.remaining = request.limit - request.output->n_decoded();
    }
    return draft_limit(cap, n_min, room);
}

/// One drafter, for all slots that have no draft yet (11 §3.3).
void Speculator::ask(DrafterSet::Member& runner, std::vector<Slot*>& open) {
    std::vector<DraftRequest> requests;
    std::vector<Slot*> asked;
    std::vector<Slot*> off;
    std::vector<std::int32_t> whole_limits;
    std::int32_t n_reserved = 0;
    for (Slot* slot : open) {
        if (!is_wanted(slot->request->params->speculation, runner)) {
            continue;
        }
        const DepthSetting setting = setting_of(*slot, runner);
        const std::int32_t cap = control_.cap(slot->id, runner.drafter->type(), true);
        const std::int32_t n_others = n_generating_ - static_cast<std::int32_t>(asked.size()) - 1;
        const std::int32_t limit =
            room_for(*slot, runner.drafter->type(), cap, setting.n_min, n_reserved, n_others);
        if (limit <= 0) {
            if (cap > 0) {
                slot->request->speculation.idle_reason = idle::no_room;
            } else {
                off.push_back(slot);
            }
            continue;
        }
        n_reserved += limit + 1;
        requests.push_back(trees_.asking(request_of(*slot, setting, limit)));
        whole_limits.push_back(whole_limit(setting, requests.back(), runner.drafter->type()));
        asked.push_back(slot);
    }
    watch(runner, off);
    if (requests.empty()) {
        return;
    }
    const Micros begun = now_us();
    auto [drafts, whole] = draft_whole(runner, requests, whole_limits);
    works_.push_back(work_of(runner.drafter->type(), drafts, to_ms(now_us() - begun)));
    const std::vector<bool> was_found = shorten(runner.drafter->type(), requests, drafts);
    const auto n_asked = static_cast<std::int32_t>(asked.size());
    TreeShare share{.n_rows = state_.facts().n_batch - n_reserved - (n_generating_ - n_asked),
                    .n_slots = n_asked};
    for (std::size_t i = 0; i < asked.size() && i < drafts.size(); ++i) {
        if (was_found[i] && drafts[i].empty()) {
            asked[i]->request->speculation.idle_reason = idle::cycle_cost;
            std::erase(open, asked[i]);
        } else if (take(*asked[i], runner, std::move(drafts[i]), requests[i])) {
            trees_.grow(*asked[i], requests[i], setting_of(*asked[i], runner).base, share);
            std::erase(open, asked[i]);
        }
        ShadowDraft& shadow = shadow_of(*asked[i], runner.drafter->type());
        if (!shadow.is_open()) {
            shadow.open(whole[i], requests[i].tokens.size(), asked[i]->request->draft.size());
        }
        --share.n_slots;
    }
}

/// Cuts each draft to what pays in this cycle; those that were of use before.
std::vector<bool> Speculator::shorten(DraftType type, std::span<const DraftRequest> requests,
                                      std::span<Draft> drafts) {
    std::vector<DepthControl::Found> found;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::int32_t size = i < drafts.size() ? std::min(drafts[i].size(), requests[i].limit) : 0;
        // Where it branches is not known behind the cut.
        const bool is_whole = requests[i].n_ranks > 1;
        found.push_back({requests[i].slot, size >= requests[i].n_min ? size : 0, is_whole});
    }
    std::vector<bool> was_found;
    std::ranges::transform(found, std::back_inserter(was_found),
                           [](const DepthControl::Found& draft) { return draft.size > 0; });
    control_.shorten(found, type);
    for (std::size_t i = 0; i < drafts.size() && i < found.size(); ++i) {
        if (was_found[i]) {
            drafts[i].cut(std::min(drafts[i].size(), found[i].size));
        }
    }
    return was_found;
}

DraftRequest Speculator::request_of(Slot& slot, const DepthSetting& setting, std::int32_t limit) const {
    SlotRequest& request = *slot.request;
    return {.slot = slot.id,
            .tokens = slot.record.tokens,
            .pending = request.pending,
            .limit = limit,
            .n_min = setting.n_min,
            .p_min = setting.p_min,
            .temperature = setting.temperature,
            .seed = static_cast<std::uint64_t>(request.sampler->draw() * seed_range)};
}

bool Speculator::take(Slot& slot, const DrafterSet::Member& runner, Draft draft, const DraftRequest& asked) {
    SpeculationReport& report = slot.request->speculation;
    if (draft.size() > asked.limit) {
        state_.log(log_debug, "slot " + std::to_string(slot.id) + ": a draft of " + runner.name +
                                  " is cut from " + std::to_string(draft.size()) + " to " +
                                  std::to_string(asked.limit) + " tokens");
        draft.cut(asked.limit);
    }
    if (draft.empty() || draft.size() < asked.n_min) {
        report.idle_reason = draft.empty() ? idle::empty_draft : idle::below_n_min;
        return false;
    }
    if (!save_for_rollback(state_, slot, route_, draft.size())) {
        report.idle_reason = idle::off;
        return false;
    }
    report.idle_reason.clear();
    report.active_type = runner.name;
    ++n_drafting_;
    slot.request->draft = std::move(draft);
    return true;
}

void Speculator::verify(Slot& slot) {
    const Micros begun = now_us();
    SlotRequest& request = *slot.request;
    const Draft draft = std::exchange(request.draft, {});
    const std::vector<std::int32_t> rows = std::exchange(request.verify_rows, {});
    unsettled_.push_back({.slot = slot.id,
                          .task = request.task.id,
                          .n_in_memory = slot.n_tokens() + draft.n_verified() - draft.size()});
    // The list is that of plain decoding at each token, so that whoever looks at it need not know of drafts.
    slot.record.tokens.resize(slot.record.tokens.size() - draft.tokens.size());
    const Position root = slot.n_tokens() - 1;
    bool is_first = true;
    const VerifyInput input{
        .draft = draft,
        .mode = mode_for(asked_mode_, draft, *request.sampler),
        .temperature = request.params->sampling.temperature,
        .grammar_blocks = state_.params.speculation.grammar_blocks,
        .whole_rows = request.takes_whole_rows,
        .logits =
            [&](std::int32_t row) { return state_.context().logits(rows[static_cast<std::size_t>(row)]); },
        .emit =
            [&](Token token, std::span<const float> logits) {
                if (!std::exchange(is_first, false)) {
                    slot.record.tokens.push_back(request.pending);
                }
                return emit_token(state_, slot, token, logits);
            }};
    try {
        const Verified verified = verify_draft(*request.sampler, input);
        unsettled_.back().kept_branch = TreeDrafting::kept_branch(draft, verified, root);
        count(slot, draft, input.mode, verified);
    } catch (const std::exception& problem) {
        unsettled_.pop_back();
        fail_choice(state_, slot, problem);
        state_.clear(slot);
    }
    accept_us_ += now_us() - begun;
}

void Speculator::settle() {
    const Micros begun = now_us();
    for (const Unsettled& one : std::exchange(unsettled_, {})) {
        Slot& slot = state_.slots[static_cast<std::size_t>(one.slot)];
        if (slot.request == nullptr || slot.request->task.id != one.task) {
            continue;
        }
        if (trees_.take_over(slot, one.kept_branch)) {
            roll_back(state_, slot, route_, one.n_in_memory);
        } else {
            give_up_memory(state_, slot);
        }
        if (slot.request == nullptr) {
            continue;
        }
        // The others are described once the cycle has ended.
        if (slot.request->has_ended()) {
            describe(slot);
            control_.end(slot.id);
            finish(state_, slot);
        }
    }
    trees_.withdraw();
    accept_us_ += now_us() - begun;
}

}  // namespace paddock
