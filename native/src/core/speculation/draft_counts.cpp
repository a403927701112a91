#include "core/speculation/draft_counts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paddock {

namespace {

void add_position_counts(std::vector<std::int64_t>& counts, std::int32_t n) {
    if (counts.size() < static_cast<std::size_t>(n)) {
        counts.resize(static_cast<std::size_t>(n));
    }
    std::for_each_n(counts.begin(), n, [](std::int64_t& count) { ++count; });
}

void add(VerifyCounts& sum, const VerifyCounts& more) {
    sum.exact += more.exact;
    sum.prob_accept += more.prob_accept;
    sum.reject += more.reject;
    sum.no_prob += more.no_prob;
    sum.bonus += more.bonus;
}

/// Both have these counts, by the same names.
template <typename Counts>
void add_draft(Counts& counts, const Draft& draft, const Verified& verified) {
    ++counts.drafts;
    counts.tree_drafts += draft.tree.empty() ? 0 : 1;
    counts.drafted += draft.n_verified();
    counts.accepted += verified.n_accepted;
    add_position_counts(counts.drafted_by_position, verified.n_covered);
    add_position_counts(counts.accepted_by_position, verified.n_accepted);
    counts.accepted_by_position.resize(counts.drafted_by_position.size());
    add(counts.verify_counts, verified.counts);
}

DraftTypeCounts& counts_of(std::vector<DraftTypeCounts>& all, DraftType type) {
    const auto found = std::ranges::find(all, type, &DraftTypeCounts::type);
    return found != all.end() ? *found : all.emplace_back(DraftTypeCounts{.type = type});
}

}  // namespace

void count_draft(SpeculationReport& report, const Draft& draft, const Verified& verified) {
    add_draft(report, draft, verified);
    DraftTypeCounts& own = counts_of(report.by_type, draft.type);
    ++own.drafts;
    own.drafted += draft.size();
    own.accepted += verified.n_accepted;
}

void count_draft(SpeculationTotals& totals, const Draft& draft, const Verified& verified) {
    add_draft(totals, draft, verified);
}

DraftWork work_of(DraftType type, std::span<const Draft> drafts, double ms) {
    DraftWork work{.type = type, .ms = ms};
    for (const Draft& draft : drafts) {
        work.n_drafting += draft.empty() ? 0 : 1;
        work.deepest = std::max(work.deepest, draft.size());
    }
    return work;
}

}  // namespace paddock
