#include "core/prompt_cache.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "core/prompt_reuse.h"

namespace paddock {

namespace {

constexpr std::int64_t bytes_per_mib = std::int64_t{1024} * 1024;
/// Least share of an entry that a request has to begin with (10 §10.4).
constexpr float min_keep = 0.25F;
/// What remains of the cache's size when memory ran out (10 §10.3).
constexpr double shrink_factor = 0.4;

bool begins_with(const PromptRecord& record, const PromptRecord& beginning) {
    return record.lora_key == beginning.lora_key && record.tokens.size() >= beginning.tokens.size() &&
           std::equal(beginning.tokens.begin(), beginning.tokens.end(), record.tokens.begin());
}

/// How well a prompt suits a request; both grow with what they share.
struct Fit {
    float f_keep = -1.0F;
    float f_sim = 0.0F;
};

Fit fit_of(const PromptRecord& record, std::span<const Token> wanted, const LoraKey& key) {
    if (record.tokens.empty() || record.lora_key != key) {
        return {};
    }
    const auto common = static_cast<float>(common_prefix(record.tokens, wanted));
    return {.f_keep = common / static_cast<float>(record.tokens.size()),
            .f_sim = wanted.empty() ? 0.0F : common / static_cast<float>(wanted.size())};
}

}  // namespace

PromptCache::PromptCache(std::int64_t limit_mib, std::int64_t n_ctx)
    : limit_bytes_(limit_mib <= std::numeric_limits<std::int64_t>::max() / bytes_per_mib
                       ? std::max<std::int64_t>(-1, limit_mib) * bytes_per_mib
                       : -1),
      limit_tokens_(n_ctx) {}

SaveOutcome PromptCache::save(Context& context, SequenceId sequence, const PromptRecord& record) {
    if (contains(record)) {
        return SaveOutcome::known;
    }
    const auto announced = static_cast<std::int64_t>(bytes_of(record) + context.state_size(sequence, false));
    if (has_limit() && announced > limit_bytes_) {
        return SaveOutcome::too_large;
    }
    drop_prefixes_of(record);
    while (has_limit() && !entries_.empty() && bytes_ + announced > limit_bytes_) {
        drop(entries_.begin());
    }
    try {
        Entry entry{.record = record,
                    .state = context.read_state(sequence, false),
                    .bytes = announced,
                    .n_tokens = static_cast<std::int64_t>(record.tokens.size())};
        if (entry.state.empty()) {
            return SaveOutcome::failed;
        }
        entries_.push_back(std::move(entry));
        bytes_ += announced;
        n_tokens_ += entries_.back().n_tokens;
    } catch (const std::bad_alloc&) {
        shrink();
        return SaveOutcome::failed;
    }
    return SaveOutcome::saved;
}

bool PromptCache::load(Context& context, SequenceId sequence, PromptRecord& record,
                       std::span<const Token> wanted, const LoraKey& key) {
    Fit best_fit = fit_of(record, wanted, key);
    auto best = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const Fit fit = fit_of(entry->record, wanted, key);
        if (fit.f_keep >= min_keep && fit.f_keep > best_fit.f_keep && fit.f_sim > best_fit.f_sim) {
            best_fit = fit;
            best = entry;
        }
    }
    if (best == entries_.end()) {
        return true;
    }
    const bool is_restored = context.write_state(sequence, best->state, false);
    if (is_restored) {
        record = std::move(best->record);
    }
    drop(best);
    return is_restored;
}

void PromptCache::enforce_limits() {
    while (has_limit() && bytes_ > limit_bytes_ && !entries_.empty()) {
        drop(entries_.begin());
    }
    double limit_tokens = static_cast<double>(limit_tokens_);
    if (has_limit() && bytes_ > 0) {
        // Small states may stand for more tokens than the context holds.
        const double tokens_per_byte = static_cast<double>(n_tokens_) / static_cast<double>(bytes_);
        limit_tokens = std::max(limit_tokens, static_cast<double>(limit_bytes_) * tokens_per_byte);
    }
    while (static_cast<double>(n_tokens_) > limit_tokens && !entries_.empty()) {
        drop(entries_.begin());
    }
}

bool PromptCache::contains(const PromptRecord& record) const {
    return std::ranges::any_of(entries_,
                               [&](const Entry& entry) { return begins_with(entry.record, record); });
}

void PromptCache::drop_prefixes_of(const PromptRecord& record) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        entry = begins_with(record, entry->record) ? drop(entry) : std::next(entry);
    }
}

PromptCache::Iterator PromptCache::drop(const Iterator& entry) {
    bytes_ -= entry->bytes;
    n_tokens_ -= entry->n_tokens;
    return entries_.erase(entry);
}

/// Memory ran out: the machine has less of it than the limit says.
void PromptCache::shrink() {
    const double left = shrink_factor * static_cast<double>(bytes_);
    limit_bytes_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
    enforce_limits();
}

}  // namespace paddock
