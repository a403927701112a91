#include "core/speculation/loop_guard.h"

#include <algorithm>

namespace paddock {

namespace {

/// Periods that a history has to hold before one counts (11 §19.6).
constexpr std::int32_t least_periods = 3;
/// Percent of tokens that have to equal those a period earlier (11 §19.7).
constexpr std::int64_t least_match_percent = 95;

}  // namespace

RepetitionHistory::RepetitionHistory(std::int32_t window, std::int32_t max_period, std::int32_t min_coverage)
    : window_(static_cast<std::size_t>(window)),
      max_period_(static_cast<std::size_t>(max_period)),
      min_coverage_(min_coverage) {}

void RepetitionHistory::push(Token token) {
    const std::size_t n_periods = std::min(max_period_, tokens_.size() - begin_);
    if (runs_.size() < n_periods) {
        runs_.resize(n_periods);
        matches_.resize(n_periods);
    }
    const std::size_t end = tokens_.size();
    for (std::size_t i = 0; i < n_periods; ++i) {
        const std::int32_t is_equal = tokens_[end - 1 - i] == token ? 1 : 0;
        runs_[i] = (runs_[i] + 1) * is_equal;
        matches_[i] += is_equal;
    }
    tokens_.push_back(token);
    if (tokens_.size() - begin_ > window_) {
        drop_oldest();
    }
}

void RepetitionHistory::drop_oldest() {
    const Token oldest = tokens_[begin_];
    ++begin_;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        matches_[i] -= tokens_[begin_ + i] == oldest ? 1 : 0;
    }
    if (begin_ >= window_) {
        tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(begin_));
        begin_ = 0;
    }
}

void RepetitionHistory::clear() {
    tokens_.clear();
    runs_.clear();
    matches_.clear();
    begin_ = 0;
}

std::optional<Loop> RepetitionHistory::find() const {
    const auto n_periods = static_cast<std::size_t>(size() / least_periods);
    const std::size_t last_period = std::min(runs_.size(), n_periods);
    const std::optional<Loop> found = find_exact(last_period);
    return found.has_value() ? found : find_near(last_period);
}

std::optional<Loop> RepetitionHistory::find_exact(std::size_t last_period) const {
    for (std::size_t i = 0; i < last_period; ++i) {
        const auto period = static_cast<std::int32_t>(i + 1);
        // A run may have begun before what the window still holds.
        const std::int32_t n_equal = std::min(runs_[i], size() - period);
        const std::int32_t coverage = n_equal > 0 ? n_equal + period : 0;
        if (coverage >= min_coverage_ && coverage / least_periods >= period) {
            return Loop{.is_exact = true,
                        .period = period,
                        .coverage = coverage,
                        .score = static_cast<double>(coverage) / size()};
        }
    }
    return std::nullopt;
}

std::optional<Loop> RepetitionHistory::find_near(std::size_t last_period) const {
    std::optional<Loop> best;
    for (std::size_t i = 0; i < last_period; ++i) {
        const auto period = static_cast<std::int32_t>(i + 1);
        const std::int32_t coverage = size() - period;
        const bool is_enough =
            coverage >= min_coverage_ && std::int64_t{100} * matches_[i] >= least_match_percent * coverage;
        if (!is_enough) {
            continue;
        }
        const double share = static_cast<double>(matches_[i]) / coverage;
        if (!best.has_value() || share > best->score) {
            best = Loop{.is_exact = false, .period = period, .coverage = coverage, .score = share};
        }
    }
    return best;
}

LoopGuard::LoopGuard(const LoopGuardParams& params)
    : params_(params),
      regions_{Region{.history = RepetitionHistory(params.window_tokens, params.max_period,
                                                   params.min_repeated_coverage)},
               Region{.history = RepetitionHistory(params.window_tokens, params.max_period,
                                                   params.min_repeated_coverage)}} {
    report_.mode = params.mode;
}

std::optional<Loop> LoopGuard::take(Token token, TextRegion region) {
    const bool begins_block = region == TextRegion::reasoning && last_region_ != TextRegion::reasoning;
    last_region_ = region;
    if (region == TextRegion::none) {
        return std::nullopt;
    }
    std::int32_t& n_tokens =
        region == TextRegion::reasoning ? report_.reasoning_tokens : report_.visible_tokens;
    ++n_tokens;
    if (!is_on()) {
        return std::nullopt;
    }
    Region& watched = regions_[static_cast<std::size_t>(region)];
    if (begins_block) {
        watched.history.clear();
    }
    watched.history.push(token);
    ++watched.n_unchecked;
    if (n_tokens < params_.min_reasoning_tokens || watched.n_unchecked < params_.check_interval) {
        return std::nullopt;
    }
    watched.n_unchecked = 0;
    return watched.history.find();
}

bool LoopGuard::may_close(TextRegion region, std::int32_t n_remaining, std::int32_t n_forced) const {
    const bool has_room = n_remaining < 0 || n_forced <= n_remaining;
    return params_.mode == name_of(LoopAction::force_close) && region == TextRegion::reasoning && has_room &&
           report_.interventions < params_.interventions_max;
}

void LoopGuard::act(const Loop& loop, LoopAction action) {
    report_.triggered = true;
    report_.reason = loop.kind();
    report_.action = name_of(action);
    if (action == LoopAction::force_close) {
        ++report_.interventions;
        regions_[static_cast<std::size_t>(TextRegion::reasoning)].history.clear();
    }
}

}  // namespace paddock
