#include "core/speculation/ngram_cache.h"

#include <algorithm>

#include "core/printable.h"
#include "core/speculation/lookup_file.h"

namespace paddock {

namespace {

using Node = NgramCounts::Node;

/// What the followers of an n-gram need for a draft: how many there have to be, and the least share of the
/// one drafted in percent.
struct Limits {
    std::int64_t sample = 0;
    std::int64_t percent = 0;
};

using LimitsBySize = std::array<Limits, NgramCounts::max_size>;

/// For n-grams of 1 … 4 tokens (11 §6.6).
constexpr LimitsBySize context_limits{{{2, 66}, {2, 50}, {1, 50}, {1, 50}}};
constexpr LimitsBySize dynamic_limits{{{4, 75}, {3, 66}, {2, 66}, {2, 66}}};
/// n-grams of the static file have two tokens.
constexpr std::size_t static_size = 2;
/// A follower that the static file knows weighs this times its count there.
constexpr std::int64_t static_weight = 100;

bool is_enough(const Limits& limits, std::int64_t count, std::int64_t sum) {
    return sum >= limits.sample && 100 * count >= limits.percent * sum;
}

/// An n-gram of the static file, or none, and the counts of its followers.
struct StaticEnd {
    const NgramCounts& counts;
    Node node = NgramCounts::none;

    std::int64_t weight_of(Token token) const {
        const Node found = node == NgramCounts::none ? NgramCounts::none : counts.child(node, token);
        return found == NgramCounts::none || counts.count(found) == 0 ? 1
                                                                      : static_weight * counts.count(found);
    }
};

/// The follower of `node` with the highest rank, the smaller token of two; `node` has followers.
Node best_follower(NgramCounts& counts, Node node, const StaticEnd& other) {
    const Node top = counts.top_follower(node);
    if (other.node == NgramCounts::none) {
        return top;
    }
    Node best = top;
    std::int64_t best_rank = counts.count(top) * other.weight_of(counts.token(top));
    counts.for_each_follower(node, [&](Node follower) {
        const std::int64_t rank = counts.count(follower) * other.weight_of(counts.token(follower));
        if (rank > best_rank || (rank == best_rank && counts.token(follower) < counts.token(best))) {
            best = follower;
            best_rank = rank;
        }
    });
    return best;
}

std::optional<Token> follower_of(NgramCounts& counts, Node node, const Limits& limits,
                                 const StaticEnd& other) {
    const std::int64_t sum = counts.follower_sum(node);
    // No follower is more frequent than the top one: where that isn't enough, none has to be looked at.
    if (sum == 0 || !is_enough(limits, counts.count(counts.top_follower(node)), sum)) {
        return std::nullopt;
    }
    const Node best = best_follower(counts, node, other);
    if (!is_enough(limits, counts.count(best), sum)) {
        return std::nullopt;
    }
    return counts.token(best);
}

/// By the longest n-gram at the end of `text` that is enough.
std::optional<Token> longest_match(NgramCounts& counts, std::span<const Token> text,
                                   const LimitsBySize& limits, const StaticEnd& other) {
    if (counts.is_empty()) {
        return std::nullopt;
    }
    for (std::size_t size = std::min(text.size(), NgramCounts::max_size); size > 0; --size) {
        const Node node = counts.find(text.last(size));
        if (node == NgramCounts::none) {
            continue;
        }
        if (const auto token = follower_of(counts, node, limits[size - 1], other)) {
            return token;
        }
    }
    return std::nullopt;
}

/// With the name of the file; empty: none.
std::string problem_of(const std::string& path, std::int32_t n_vocab, NgramCounts& counts) {
    if (path.empty()) {
        return {};
    }
    const auto problem = problem_of_lookup_file(path, n_vocab, counts);
    return problem ? std::string(1, '\'').append(printable(path)).append("' ").append(*problem)
                   : std::string();
}

}  // namespace

NgramCache::NgramCache(const std::string& static_file, const std::string& dynamic_file, std::int32_t n_slots,
                       std::int32_t n_vocab)
    : problem_(problem_of(static_file, n_vocab, static_)), slots_(static_cast<std::size_t>(n_slots)) {
    if (problem_.empty()) {
        problem_ = problem_of(dynamic_file, n_vocab, dynamic_);
    }
}

void NgramCache::Slot::append(Token token) {
    // An n-gram's follower makes the next longer n-gram.
    for (std::size_t size = NgramCounts::max_size + 1; size > 0; --size) {
        const Node before = ends[size - 1];
        const Node grown = before == NgramCounts::none ? NgramCounts::none : counts.add(before, token, 1);
        if (size <= NgramCounts::max_size) {
            ends[size] = grown;
        }
    }
    text.push_back(token);
}

void NgramCache::Slot::remove_last() {
    const std::span<const Token> all = text;
    // In the opposite order of `append`.
    for (std::size_t size = 1; size <= std::min(all.size(), NgramCounts::max_size + 1); ++size) {
        counts.remove(counts.find(all.last(size)));
    }
    text.pop_back();
}

void NgramCache::Slot::cut(std::size_t n_kept) {
    if (n_kept == text.size()) {
        return;
    }
    if (n_kept < text.size() / 2) {
        // Less work than taking back the rest.
        const std::vector<Token> kept(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_kept));
        *this = {};
        for (const Token token : kept) {
            append(token);
        }
        return;
    }
    while (text.size() > n_kept) {
        remove_last();
    }
    ends = no_ends;
    for (std::size_t size = 1; size <= std::min(text.size(), NgramCounts::max_size); ++size) {
        ends[size] = counts.find(std::span<const Token>(text).last(size));
    }
}

void NgramCache::Slot::update(std::span<const Token> tokens, std::size_t n_kept) {
    cut(n_kept);
    for (const Token token : tokens.subspan(n_kept)) {
        append(token);
    }
}

void NgramCache::begin(SequenceId slot, std::span<const Token> tokens) {
    Slot& state = slots_[static_cast<std::size_t>(slot)];
    state.update(tokens, common_length(state.text, tokens));
}

void NgramCache::reset(SequenceId slot) { slots_[static_cast<std::size_t>(slot)] = {}; }

std::optional<Token> NgramCache::next(NgramCounts& own, std::span<const Token> text) {
    StaticEnd other{.counts = static_};
    if (text.size() >= static_size) {
        other.node = static_.find(text.last(static_size));
    }
    if (const auto token = longest_match(own, text, context_limits, other)) {
        return token;
    }
    if (const auto token = longest_match(dynamic_, text, dynamic_limits, other)) {
        return token;
    }
    if (other.node == NgramCounts::none) {
        return std::nullopt;
    }
    return follower_of(static_, other.node, context_limits[static_size - 1], {.counts = static_});
}

void NgramCache::propose(const DraftRequest& request, std::vector<Token>& tokens) {
    Slot& slot = slots_[static_cast<std::size_t>(request.slot)];
    slot.update(request.tokens, unchanged_length(slot.text, request.tokens));
    slot.append(request.pending);
    const std::span<const Token> known = slot.text;
    const auto end = known.last(std::min(known.size(), NgramCounts::max_size));
    std::vector<Token> text(end.begin(), end.end());
    const std::int32_t longest = std::min(longest_cache_draft, request.limit);
    for (std::int32_t i = 0; i < longest; ++i) {
        const auto token = next(slot.counts, text);
        if (!token) {
            break;
        }
        text.push_back(*token);
        tokens.push_back(*token);
    }
}

}  // namespace paddock
