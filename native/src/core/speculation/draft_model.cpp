#include "core/speculation/draft_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paddock {
namespace {

/// Tokens of a text that a slot may catch up on in one call (11 §5.3).
constexpr std::size_t max_catch_up = 2048;
constexpr std::int32_t max_failures_in_a_row = 3;
/// Code of Context::decode.
constexpr std::int32_t code_no_room = 1;

}  // namespace

DraftModel::DraftModel(Context& context, const Vocabulary& vocabulary, std::int32_t n_vocab_target,
                       std::int32_t n_slots)
    : context_(context),
      vocabulary_(vocabulary),
      n_own_(vocabulary.size()),
      n_shared_(static_cast<std::size_t>(std::min(n_own_, n_vocab_target))),
      mirrors_(static_cast<std::size_t>(n_slots)) {}

bool DraftModel::is_usable() const { return failures_in_a_row_ < max_failures_in_a_row; }

std::vector<Draft> DraftModel::draft(std::span<const DraftRequest> requests) {
    std::vector<Draft> drafts(requests.size());
    if (!is_usable()) {
        return drafts;
    }
    lanes_.clear();
    rows_.clear();
    for (const DraftRequest& request : requests) {
        lanes_.push_back(open(request));
    }
    if (rows_.empty()) {
        return drafts;
    }
    Outcome outcome = decode_rows();
    while (outcome == Outcome::good && add_steps()) {
        outcome = decode_rows();
    }
    if (outcome == Outcome::failed) {
        ++failures_in_a_row_;
    }
    if (outcome != Outcome::good) {
        return drafts;
    }
    failures_in_a_row_ = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i].draft.size() >= requests[i].n_min) {
            drafts[i] = std::move(lanes_[i].draft);
        }
    }
    return drafts;
}

/// Adds the rows that lead to the slot's first token, or as many of them as one call may have.
DraftModel::Lane DraftModel::open(const DraftRequest& request) {
    Lane lane;
    lane.request = &request;
    lane.random = RandomStream(request.seed);
    const auto n_text = static_cast<std::int32_t>(request.tokens.size());
    // The last drafted token is not fed.
    lane.limit = std::min(request.limit, context_.facts().n_ctx_slot - n_text);
    if (lane.limit <= 0 || lane.limit < request.n_min) {
        return lane;
    }
    align(request.slot, request.tokens);
    const std::size_t n_held = mirrors_[static_cast<std::size_t>(request.slot)].size();
    const std::span<const Token> missing = request.tokens.subspan(n_held);
    const auto is_readable = [this](Token token) { return can_read(token); };
    if (!can_read(request.pending) || !std::ranges::all_of(missing, is_readable)) {
        return lane;
    }
    auto position = static_cast<Position>(n_held);
    for (const Token token : missing.first(std::min(missing.size(), max_catch_up))) {
        add_row(request.slot, position++, token, false);
    }
    if (position == n_text) {
        add_row(request.slot, position, request.pending, true);
    }
    return lane;
}

void DraftModel::align(SequenceId slot, std::span<const Token> text) {
    std::vector<Token>& mirror = mirrors_[static_cast<std::size_t>(slot)];
    const auto differs = std::ranges::mismatch(mirror, text).in1;
    if (differs == mirror.end()) {
        return;
    }
    const auto n_common = static_cast<Position>(differs - mirror.begin());
    if (n_common > 0 && context_.remove(slot, n_common, end_position)) {
        mirror.erase(differs, mirror.end());
    } else {
        forget(slot);
    }
}

void DraftModel::add_row(SequenceId slot, Position position, Token token, bool output) {
    rows_.push_back({.token = token, .position = position, .sequence = slot, .output = output});
}

/// One row for each slot that wants another token; false when there is none.
bool DraftModel::add_steps() {
    for (const Lane& lane : lanes_) {
        if (lane.goes_on) {
            const std::size_t n_held = mirrors_[static_cast<std::size_t>(lane.request->slot)].size();
            add_row(lane.request->slot, static_cast<Position>(n_held), lane.draft.tokens.back(), true);
        }
    }
    return !rows_.empty();
}

DraftModel::Outcome DraftModel::decode_rows() {
    const auto n_batch = static_cast<std::size_t>(context_.facts().n_batch);
    std::span<const BatchRow> rest = rows_;
    while (!rest.empty()) {
        const std::span<const BatchRow> window = rest.first(std::min(rest.size(), n_batch));
        const Outcome outcome = decode_window(window);
        if (outcome != Outcome::good) {
            return outcome;
        }
        rest = rest.subspan(window.size());
    }
    rows_.clear();
    return Outcome::good;
}

DraftModel::Outcome DraftModel::decode_window(std::span<const BatchRow> window) {
    std::int32_t code = context_.decode(window);
    if (code == code_no_room && forget_others()) {
        code = context_.decode(window);
    }
    if (code == code_no_room) {
        return Outcome::no_room;
    }
    if (code != 0) {
        // What memory holds of the slots is unknown now.
        for (const Lane& lane : lanes_) {
            forget(lane.request->slot);
        }
        return Outcome::failed;
    }
    for (const BatchRow& row : window) {
        mirrors_[static_cast<std::size_t>(row.sequence)].push_back(row.token);
    }
    for (std::size_t i = 0; i < window.size(); ++i) {
        if (!window[i].output) {
            continue;
        }
        const std::span<const float> logits = context_.logits(static_cast<std::int32_t>(i));
        if (logits.empty()) {
            return Outcome::failed;
        }
        extend(lane_of(window[i].sequence), logits);
    }
    return Outcome::good;
}

DraftModel::Lane& DraftModel::lane_of(SequenceId slot) {
    return *std::ranges::find_if(lanes_, [slot](const Lane& lane) { return lane.request->slot == slot; });
}

/// The next token of a draft, unless the drafter is too unsure of it (11 §5.5-5.6).
void DraftModel::extend(Lane& lane, std::span<const float> logits) const {
    const DraftRequest& request = *lane.request;
    const std::vector<RankedLogit> best = best_logits(logits.first(std::min(logits.size(), n_shared_)));
    if (best.empty() || top_probability(best) < request.p_min) {
        lane.goes_on = false;
        return;
    }
    Token token = best.front().token;
    if (request.temperature > 0.0F) {
        std::vector<DraftCandidate> candidates = softmax(best, request.temperature);
        token = drawn(candidates, lane.random.next_unit());
        lane.draft.candidates.push_back(std::move(candidates));
    }
    if (request.n_ranks > 1) {
        add_side_chains(lane, best);
    }
    lane.draft.tokens.push_back(token);
    lane.goes_on = lane.draft.size() < lane.limit && !vocabulary_.is_end(token);
}

/// What might stand in place of the drafter's best token, where that is at all likely (11 §12.5).
void DraftModel::add_side_chains(Lane& lane, std::span<const RankedLogit> best) {
    const DraftRequest& request = *lane.request;
    const std::vector<DraftCandidate> ranked = softmax(best, 1.0F);
    const std::size_t n_ranks = std::min(ranked.size(), static_cast<std::size_t>(request.n_ranks));
    for (std::size_t rank = 1; rank < n_ranks; ++rank) {
        if (std::exp(ranked[rank].log_probability) >= request.p_split) {
            lane.draft.side_chains.push_back({.hang_depth = lane.draft.size(),
                                              .tokens = {ranked[rank].token},
                                              .score = lane.score + ranked[rank].log_probability});
        }
    }
    lane.score += ranked.front().log_probability;
}

void DraftModel::forget(SequenceId slot) {
    std::vector<Token>& mirror = mirrors_[static_cast<std::size_t>(slot)];
    context_.remove(slot, 0, end_position);
    mirror.clear();
}

bool DraftModel::forget_others() {
    bool made_room = false;
    for (std::size_t i = 0; i < mirrors_.size(); ++i) {
        const auto slot = static_cast<SequenceId>(i);
        const bool is_asked =
            std::ranges::any_of(lanes_, [slot](const Lane& lane) { return lane.request->slot == slot; });
        if (!is_asked && !mirrors_[i].empty()) {
            forget(slot);
            made_room = true;
        }
    }
    return made_room;
}

}  // namespace paddock
