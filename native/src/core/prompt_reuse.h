// How much of a prompt stands in memory already (10 §8.3-8.7).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/context.h"
#include "core/prompt_record.h"

namespace paddock {

/// Tokens that both lists begin with.
std::int32_t common_prefix(std::span<const Token> a, std::span<const Token> b);

/// Moves runs of at least `n_cache_reuse` > 0 equal tokens to where the prompt has them (10 §8.4). Memory and
/// list change alike, checkpoints of moved positions go. Returns the new count of tokens that need no
/// evaluation, at least `n_past`. Only for memory that can shift, and for prompts without the start of an
/// activated adapter: it would move past the limit that such a start sets.
std::int32_t reuse_chunks(Context& context, SequenceId sequence, PromptRecord& record,
                          std::span<const Token> prompt, std::int32_t n_past, std::int32_t n_cache_reuse);

struct HistoryOutcome {
    /// Tokens that need no evaluation; less than the prompt has.
    std::int32_t n_past = 0;
    bool restored_checkpoint = false;
    /// Why the whole prompt has to be evaluated; empty when it doesn't, or when that was no surprise.
    std::string warning;
};

/// Whether memory still has what continuing after `n_past` tokens needs; if not, a checkpoint is restored, or
/// `n_past` becomes 0 (10 §8.5-8.7). Checkpoints behind the result are erased. The caller cuts list and
/// memory down to the result.
HistoryOutcome check_history(Context& context, SequenceId sequence, PromptRecord& record, std::int32_t n_past,
                             std::int32_t n_prompt);

}  // namespace paddock
