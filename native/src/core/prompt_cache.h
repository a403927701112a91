// Prompts with their memory state in host memory, for slots that had to take something else (10 §10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/context.h"
#include "core/prompt_record.h"

namespace paddock {

enum class SaveOutcome { saved, known, too_large, failed };

/// Used by the decode thread. Outlives the context, and with it a sleep (10 §21.2).
class PromptCache {
  public:
    /// `limit_mib`: 0 off, negative: no limit. `n_ctx`: tokens of the whole context.
    PromptCache(std::int64_t limit_mib, std::int64_t n_ctx);

    /// Keeps the state of a sequence and what is known of it (10 §10.3). When memory runs out the limit is
    /// lowered for good. Entries that are beginnings of this one go.
    SaveOutcome save(Context& context, SequenceId sequence, const PromptRecord& record);

    /// Replaces a slot's prompt by an entry that suits `wanted` better (10 §10.4); without one the slot keeps
    /// its own. False: the state could not be restored, and the slot has to be cleared.
    bool load(Context& context, SequenceId sequence, PromptRecord& record, std::span<const Token> wanted,
              const LoraKey& key);

    /// Drops the oldest entries until both limits hold (10 §10.5).
    void enforce_limits();

    std::int64_t bytes() const { return bytes_; }
    std::int32_t entries() const { return static_cast<std::int32_t>(entries_.size()); }
    bool enabled() const { return limit_bytes_ != 0; }

  private:
    struct Entry {
        PromptRecord record;
        std::vector<std::byte> state;
        /// Of all of it.
        std::int64_t bytes = 0;
        std::int64_t n_tokens = 0;
    };
    using Iterator = std::deque<Entry>::iterator;

    bool has_limit() const { return limit_bytes_ >= 0; }
    bool contains(const PromptRecord& record) const;
    void drop_prefixes_of(const PromptRecord& record);
    Iterator drop(const Iterator& entry);
    void shrink();

    /// Oldest first.
    std::deque<Entry> entries_;
    std::int64_t bytes_ = 0;
    std::int64_t n_tokens_ = 0;
    /// Negative: none.
    std::int64_t limit_bytes_ = 0;
    std::int64_t limit_tokens_ = 0;
};

}  // namespace paddock
