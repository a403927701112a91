#include "core/prompt_reuse.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <vector>

namespace paddock {

namespace {

/// Where `pattern` first occurs. Knuth-Morris-Pratt, since both sides come from clients, and a plain search
/// takes the product of their lengths on repetitive text.
std::optional<std::size_t> find_run(std::span<const Token> text, std::span<const Token> pattern) {
    // borders[i]: length of the longest proper prefix of pattern[0..i] that is its suffix as well.
    std::vector<std::size_t> borders(pattern.size(), 0);
    std::size_t matched = 0;
    for (std::size_t i = 1; i < pattern.size(); ++i) {
        while (matched > 0 && pattern[i] != pattern[matched]) {
            matched = borders[matched - 1];
        }
        matched += pattern[i] == pattern[matched] ? 1 : 0;
        borders[i] = matched;
    }
    matched = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        while (matched > 0 && text[i] != pattern[matched]) {
            matched = borders[matched - 1];
        }
        matched += text[i] == pattern[matched] ? 1 : 0;
        if (matched == pattern.size()) {
            return i + 1 - matched;
        }
    }
    return std::nullopt;
}

/// Whether a state lets the sequence go on at `next`. A recurrent state stands for all tokens that went into
/// it, so that none of them may lie behind; a window has to hold what the next token looks back at.
bool suits(const Checkpoint& checkpoint, const ContextFacts& facts, Position next, Position threshold) {
    if (facts.is_recurrent || facts.is_hybrid) {
        return checkpoint.pos_max < next;
    }
    return checkpoint.pos_min < threshold || checkpoint.pos_min == 0;
}

/// The newest checkpoint that suits goes into memory; the position to continue at, or none.
std::optional<Position> restore_checkpoint(Context& context, SequenceId sequence, const PromptRecord& record,
                                           Position next, Position threshold) {
    for (const Checkpoint& checkpoint : std::views::reverse(record.checkpoints)) {
        if (!suits(checkpoint, context.facts(), next, threshold)) {
            continue;
        }
        if (!context.write_state(sequence, checkpoint.state, true)) {
            return std::nullopt;
        }
        const Position resumed = std::min(next, std::max(checkpoint.pos_min + 1, checkpoint.pos_max));
        return std::min(resumed, checkpoint.n_tokens);
    }
    return std::nullopt;
}

}  // namespace

std::int32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<std::int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::int32_t reuse_chunks(Context& context, SequenceId sequence, PromptRecord& record,
                          std::span<const Token> prompt, std::int32_t n_past, std::int32_t n_cache_reuse) {
    std::vector<Token>& cached = record.tokens;
    const auto least = static_cast<std::size_t>(n_cache_reuse);
    auto to = static_cast<std::size_t>(n_past);
    std::size_t from = to;
    while (prompt.size() - to >= least) {
        const auto found = find_run(std::span(cached).subspan(from), prompt.subspan(to, least));
        if (!found.has_value()) {
            break;
        }
        from += *found;
        const std::int32_t length = common_prefix(std::span(cached).subspan(from), prompt.subspan(to));
        if (from > to) {
            const auto position = static_cast<Position>(from);
            const auto target = static_cast<Position>(to);
            if (!context.remove(sequence, target, position)) {
                break;
            }
            context.shift(sequence, position, position + length, target - position);
            drop_checkpoints_from(record, target);
            std::copy_n(std::next(cached.begin(), position), length, std::next(cached.begin(), target));
        }
        from += static_cast<std::size_t>(length);
        to += static_cast<std::size_t>(length);
    }
    return static_cast<std::int32_t>(to);
}

HistoryOutcome check_history(Context& context, SequenceId sequence, PromptRecord& record, std::int32_t n_past,
                             std::int32_t n_prompt) {
    HistoryOutcome outcome;
    outcome.n_past = n_past;
    if (outcome.n_past == n_prompt && n_prompt > 0) {
        // One token has to be evaluated, or there is nothing to sample from.
        --outcome.n_past;
    }
    const auto n_cached = static_cast<std::int32_t>(record.tokens.size());
    if (outcome.n_past > 0 && outcome.n_past < n_cached) {
        const Position next = outcome.n_past;
        const Position threshold = std::max(0, next - context.facts().n_swa);
        const Position pos_min = context.position_min(sequence);
        if (pos_min < 0) {
            context.remove(sequence, 0, end_position);
            record.tokens.clear();
            record.checkpoints.clear();
            outcome.n_past = 0;
            outcome.warning = "memory holds nothing of the " + std::to_string(n_cached) +
                              " tokens that it should; full re-processing of the prompt";
        } else if (pos_min > 0 && pos_min >= threshold) {
            // From 0 on everything is there, however far the window reaches.
            const auto resumed = restore_checkpoint(context, sequence, record, next, threshold);
            outcome.restored_checkpoint = resumed.has_value();
            outcome.n_past = resumed.value_or(0);
            if (!resumed.has_value()) {
                outcome.warning = "memory can't go back from " + std::to_string(n_cached) + " tokens to " +
                                  std::to_string(next) +
                                  ", and no checkpoint suits; full re-processing of the prompt";
            }
        }
    }
    drop_checkpoints_from(record, outcome.n_past + 1);
    return outcome;
}

}  // namespace paddock
