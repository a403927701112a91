#include "core/speculation/cost_model.h"

#include <algorithm>
#include <cmath>

namespace paddock {
namespace {

constexpr std::int32_t most_samples = 64;
constexpr std::int64_t fresh_cycles = 2048;
/// A sample above this many means enters as that, once there are enough to tell.
constexpr double outlier = 1.5;
constexpr std::int32_t outlier_samples = 4;
/// Noise of single times moves a mean of many samples this many times less than one of few.
constexpr double settled_share = 4.0;
/// Up to so many rows a bucket is no wider than the blocks in which backends take them.
constexpr std::int32_t most_narrow_rows = 32;
/// A drafted row takes up to so many times what a row of a prompt does, which asks for no logits.
constexpr double output_share = 1.5;
/// Prompts of fewer rows tell what few rows cost.
constexpr std::int32_t least_prompt_rows = 64;
/// Spread of rows, relative to their square, that a regression needs.
constexpr double least_spread = 0.01;

void approach(double& mean, double value, double share) { mean += share * (value - mean); }

}  // namespace

std::size_t DraftCost::class_of(std::int32_t n_drafting) {
    if (n_drafting <= 2) {
        return n_drafting <= 1 ? 0 : 1;
    }
    if (n_drafting <= 4) {
        return 2;
    }
    return n_drafting <= 8 ? 3 : 4;
}

double DraftCost::of(std::int32_t n_drafting, std::int32_t deepest) const {
    if (n_drafting <= 0 || deepest <= 0) {
        return 0.0;
    }
    return ms[class_of(n_drafting)] * (is_stepwise ? deepest : 1);
}

std::size_t CostModel::bucket_of(std::int32_t rows) {
    const auto r = static_cast<std::size_t>(std::max(1, rows));
    if (r <= 8) {
        return r;
    }
    if (r <= 32) {
        return 8 + (r - 8 + 3) / 4;
    }
    return r <= 128 ? 14 + (r - 32 + 15) / 16 : 21;
}

void CostModel::add_cycle(std::int32_t rows, double ms, std::int64_t n_memory_tokens) {
    if (rows <= 0 || !std::isfinite(ms) || ms < 0.0) {
        return;
    }
    ++n_cycles_;
    Bucket& bucket = buckets_[bucket_of(rows)];
    const auto memory = static_cast<double>(n_memory_tokens);
    double y = ms;
    if (bucket.count >= outlier_samples) {
        y = std::min(y, outlier * bucket.ms);
    }
    // A mean from other circumstances says nothing; moving it step by step would keep it wrong for long.
    const bool starts = is_stale(rows, n_memory_tokens);
    const double share =
        starts ? 1.0 : std::max(ewma_ / settled_share, std::min(ewma_, 1.0 / (bucket.count + 1.0)));
    approach(bucket.ms, y, share);
    approach(bucket.rows, rows, share);
    approach(bucket.memory, memory, share);
    bucket.count = std::min(bucket.count + 1, most_samples);
    bucket.last_cycle = n_cycles_;

    const double fade = 1.0 - ewma_ / 4.0;
    const double x = rows;
    s0_ = s0_ * fade + 1.0;
    s1_ = s1_ * fade + x;
    s2_ = s2_ * fade + x * x;
    sy_ = sy_ * fade + y;
    sxy_ = sxy_ * fade + x * y;
    // Where nothing is drafted for long the samples no longer tell what a row costs, and then the last ones
    // that did are better than none: nothing would ever be drafted again.
    if (const std::optional<Line> line = regression()) {
        line_ = line;
    }
}

void CostModel::add_prompt(std::int32_t rows, double ms) {
    if (rows < least_prompt_rows || !std::isfinite(ms) || ms <= 0.0) {
        return;
    }
    const double row_ms = output_share * ms / rows;
    far_row_ms_ = far_row_ms_ ? std::lerp(*far_row_ms_, row_ms, ewma_) : row_ms;
}

void CostModel::add_draft(const DraftWork& work) {
    if (work.n_drafting <= 0 || work.deepest <= 0 || !std::isfinite(work.ms) || work.ms < 0.0) {
        return;
    }
    DraftMean& mean = drafts_[static_cast<std::size_t>(work.type)][DraftCost::class_of(work.n_drafting)];
    const double value = is_model_drafter(work.type) ? work.ms / work.deepest : work.ms;
    approach(mean.ms, value, mean.is_known ? ewma_ : 1.0);
    mean.is_known = true;
}

bool CostModel::is_fresh(const Bucket& bucket, std::int64_t n_memory_tokens) const {
    const auto memory = static_cast<double>(n_memory_tokens);
    return n_cycles_ - bucket.last_cycle <= fresh_cycles && memory >= bucket.memory / 1.5 - 1024.0 &&
           memory <= bucket.memory * 1.5 + 1024.0;
}

bool CostModel::is_stale(std::int32_t rows, std::int64_t n_memory_tokens) const {
    const Bucket& bucket = buckets_[bucket_of(rows)];
    return bucket.count == 0 || !is_fresh(bucket, n_memory_tokens);
}

std::optional<CostModel::Line> CostModel::regression() const {
    const double d = s0_ * s2_ - s1_ * s1_;
    if (s1_ <= 0.0 || d < least_spread * s1_ * s1_) {
        return std::nullopt;
    }
    const double slope = std::max(0.0, (s0_ * sxy_ - s1_ * sy_) / d);
    const double start = (sy_ - slope * s1_) / s0_;
    return start < 0.0 ? Line{0.0, sxy_ / s2_} : Line{start, slope};
}

CostModel::Known CostModel::known(std::int64_t n_memory_tokens) const {
    Known result;
    result.line = line_;
    for (const Bucket& bucket : buckets_) {
        if (is_enough(bucket) && is_fresh(bucket, n_memory_tokens)) {
            result.points[result.n_points++] = {bucket.rows, bucket.ms};
        }
    }
    // More rows never take less: where they seem to, something else ran while the fewer were timed.
    for (std::size_t i = result.n_points; i > 1; --i) {
        result.points[i - 2].ms = std::min(result.points[i - 2].ms, result.points[i - 1].ms);
    }
    return result;
}

std::optional<double> CostModel::predict(const Known& known, std::int32_t rows) const {
    const Point* begin = known.points.data();
    const Point* end = begin + known.n_points;
    const double x = rows;
    const Point* above =
        std::lower_bound(begin, end, x, [](const Point& point, double value) { return point.rows < value; });
    if (above != end && above->rows <= x) {
        return above->ms;
    }
    const std::size_t own = bucket_of(rows);
    const auto is_own = [own](const Point& point) {
        return bucket_of(static_cast<std::int32_t>(std::lround(point.rows))) == own;
    };
    // What is in one block costs about the same.
    if (rows <= most_narrow_rows) {
        if (above != end && is_own(*above)) {
            return above->ms;
        }
        if (above != begin && is_own(*(above - 1))) {
            return (above - 1)->ms;
        }
    }
    if (above != begin && above != end) {
        const Point& below = *(above - 1);
        return below.ms + (above->ms - below.ms) * (x - below.rows) / (above->rows - below.rows);
    }
    if (begin != end) {
        const Point& nearest = above == end ? *(end - 1) : *begin;
        if (known.line) {
            // Few rows take more time each than many do: a line through few of them goes too high.
            double slope = known.line->slope;
            if (above == end) {
                slope = std::min(slope, far_row_ms_.value_or(slope));
            }
            return std::max(0.0, nearest.ms + slope * (x - nearest.rows));
        }
        return is_own(nearest) ? std::optional(nearest.ms) : std::nullopt;
    }
    if (known.line) {
        return known.line->start + known.line->slope * x;
    }
    const Bucket& bucket = buckets_[own];
    return is_enough(bucket) ? std::optional(bucket.ms) : std::nullopt;
}

std::optional<double> CostModel::cycle_ms(std::int32_t rows, std::int64_t n_memory_tokens) const {
    return predict(known(n_memory_tokens), rows);
}

std::vector<double> CostModel::cycle_ms(std::int32_t rows, std::int32_t count,
                                        std::int64_t n_memory_tokens) const {
    const Known now = known(n_memory_tokens);
    std::vector<double> result;
    result.reserve(static_cast<std::size_t>(std::max(0, count)));
    for (std::int32_t i = 0; i < count; ++i) {
        const std::optional<double> ms = predict(now, rows + i);
        if (!ms) {
            break;
        }
        result.push_back(*ms);
    }
    return result;
}

std::int32_t CostModel::most_measured(std::int64_t n_memory_tokens) const {
    const Known now = known(n_memory_tokens);
    return now.n_points == 0 ? 0 : static_cast<std::int32_t>(std::lround(now.points[now.n_points - 1].rows));
}

DraftCost CostModel::draft_cost(DraftType type) const {
    DraftCost cost;
    cost.is_stepwise = is_model_drafter(type);
    const auto& means = drafts_[static_cast<std::size_t>(type)];
    for (std::size_t i = 0; i < means.size(); ++i) {
        for (std::size_t distance = 0; distance < means.size(); ++distance) {
            if (i >= distance && means[i - distance].is_known) {
                cost.ms[i] = means[i - distance].ms;
                break;
            }
            if (i + distance < means.size() && means[i + distance].is_known) {
                cost.ms[i] = means[i + distance].ms;
                break;
            }
        }
    }
    return cost;
}

void CostModel::clear() { *this = CostModel(ewma_, min_samples_); }

}  // namespace paddock
