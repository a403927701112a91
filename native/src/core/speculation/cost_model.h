// What a cycle costs by the rows it decodes and the drafts it makes (11 §17.2-17.4); of the target context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/speculation/draft_type.h"

namespace paddock {

/// Milliseconds of drafting by the number of slots that draft and the longest draft.
struct DraftCost {
    static constexpr std::size_t n_classes = 5;
    /// 1, 2, 3-4, 5-8 and more slots.
    static std::size_t class_of(std::int32_t n_drafting);

    std::array<double, n_classes> ms{};
    /// Whether `ms` is for each token of the longest draft.
    bool is_stepwise = false;

    double of(std::int32_t n_drafting, std::int32_t deepest) const;
};

/// What one drafter did in a cycle, whatever became of its drafts.
struct DraftWork {
    DraftType type = DraftType::draft_simple;
    /// Slots with a draft, and the longest one, as they were made.
    std::int32_t n_drafting = 0;
    std::int32_t deepest = 0;
    double ms = 0.0;
};

class CostModel {
  public:
    /// `ewma`: share of a new sample in a mean; `min_samples`: samples that make a mean of use.
    CostModel(double ewma, std::int32_t min_samples) : ewma_(ewma), min_samples_(min_samples) {}

    /// A pure cycle of `rows` target rows took `ms` besides drafting, with `n_memory_tokens` in memory.
    void add_cycle(std::int32_t rows, double ms, std::int64_t n_memory_tokens);
    /// A cycle of `rows` rows of prompts alone took `ms`. It tells what many rows cost each, which is seldom
    /// seen otherwise before drafts are long, and then too late.
    void add_prompt(std::int32_t rows, double ms);
    void add_draft(const DraftWork& work);

    /// Milliseconds for `rows`, `rows` + 1, ... rows, `count` of them; ends before the first unknown one.
    std::vector<double> cycle_ms(std::int32_t rows, std::int32_t count, std::int64_t n_memory_tokens) const;
    std::optional<double> cycle_ms(std::int32_t rows, std::int64_t n_memory_tokens) const;
    /// The most rows whose mean is of use; 0: none.
    std::int32_t most_measured(std::int64_t n_memory_tokens) const;
    DraftCost draft_cost(DraftType type) const;
    /// Whether the mean for `rows` is too old, or from much shorter or longer texts.
    bool is_stale(std::int32_t rows, std::int64_t n_memory_tokens) const;
    void clear();

    static std::size_t bucket_of(std::int32_t rows);

  private:
    static constexpr std::size_t n_buckets = 22;  // the first is not used

    struct Bucket {
        std::int32_t count = 0;
        double ms = 0.0;
        double rows = 0.0;
        double memory = 0.0;
        std::int64_t last_cycle = 0;
    };
    struct Line {
        double start = 0.0;
        double slope = 0.0;
    };
    /// A mean of use, or where a line through such means goes.
    struct Point {
        double rows = 0.0;
        double ms = 0.0;
    };
    struct Known {
        std::array<Point, n_buckets> points{};
        std::size_t n_points = 0;
        std::optional<Line> line;
    };

    bool is_fresh(const Bucket& bucket, std::int64_t n_memory_tokens) const;
    bool is_enough(const Bucket& bucket) const { return bucket.count > 0 && bucket.count >= min_samples_; }
    std::optional<Line> regression() const;
    Known known(std::int64_t n_memory_tokens) const;
    std::optional<double> predict(const Known& known, std::int32_t rows) const;

    double ewma_;
    std::int32_t min_samples_;
    std::int64_t n_cycles_ = 0;
    std::array<Bucket, n_buckets> buckets_{};
    /// Milliseconds of one more drafted row where there are many, as prompts tell.
    std::optional<double> far_row_ms_;
    /// Sums of 1, R, R squared, y and R y, of which older samples fade.
    double s0_ = 0.0;
    double s1_ = 0.0;
    double s2_ = 0.0;
    double sy_ = 0.0;
    double sxy_ = 0.0;
    /// Through the samples, as of the last time that their numbers of rows differed enough.
    std::optional<Line> line_;
    struct DraftMean {
        double ms = 0.0;
        bool is_known = false;
    };
    std::array<std::array<DraftMean, DraftCost::n_classes>, draft_type_names.size()> drafts_{};
};

}  // namespace paddock
