// The controllers' part of the draft limit, its clamps, and the fringe (11 §8.4, §15, §16, §22 vectors 4-8,
// 17-20).
#include <doctest/doctest.h>

#include "core/speculation/depth_state.h"
#include "core/speculation/draft_limit.h"

using namespace paddock;

namespace {

DepthSetting setting(std::int32_t base) { return {base, 0, 0.0F, 0.0F, "rejection", true, "profit"}; }

DraftRoom room() {
    DraftRoom room;
    room.n_ctx = 4096;
    room.n_tokens = 4090;
    room.n_batch = 2048;
    room.n_ubatch = 512;
    room.batch_rows_left = 2048;
    return room;
}

Fringe fringe_with(std::int32_t n_accepted, std::int32_t n_covered, int n_drafts) {
    Fringe fringe;
    for (int i = 0; i < n_drafts; ++i) {
        fringe.add(n_accepted, n_covered);
    }
    return fringe;
}

DepthParams wide_fringe() {
    DepthParams params;
    params.fringe_min = .2;
    params.fringe_max = .8;
    return params;
}

}  // namespace

TEST_CASE("a draft leaves room for the next tokens of the context") {
    CHECK(draft_limit(16, 0, room()) == 4);
}

TEST_CASE("less room than the shortest draft is none") { CHECK(draft_limit(16, 5, room()) == 0); }

TEST_CASE("a draft ends before the budget does") {
    DraftRoom limited = room();
    limited.remaining = 3;
    CHECK(draft_limit(16, 0, limited) == 2);
    limited.remaining = 1;
    CHECK(draft_limit(16, 0, limited) == 0);
}

TEST_CASE("batches, snapshots and the rows of other slots bound a draft") {
    DraftRoom tight = room();
    tight.n_tokens = 0;
    tight.n_ubatch = 12;
    CHECK(draft_limit(16, 0, tight) == 11);
    tight.n_rs_seq = 8;
    CHECK(draft_limit(16, 0, tight) == 8);
    tight.batch_rows_left = 6;
    tight.n_unplaced = 2;
    CHECK(draft_limit(16, 0, tight) == 3);
    tight.n_tokens = 5000;
    CHECK(draft_limit(16, 0, tight) == 0);
}

TEST_CASE("a probe takes a share of the base") {
    CHECK(probe_depth(setting(16), .25) == 4);
    CHECK(probe_depth(setting(3), .25) == 1);
    CHECK(probe_depth(setting(1), .25) == 1);
    CHECK(probe_depth(setting(8), .01) == 1);
    CHECK(probe_depth(setting(0), .25) == 0);
}

TEST_CASE("profit starts off") {
    DepthCounters counters;
    CHECK(profit_cap(counters, setting(8), {}, {.is_baseline_known = true}) == 0);
    CHECK(counters.n_max == 0);
    CHECK(counters.warm_up == 4);
}

TEST_CASE("profit explores the next rung, each fourth time the base") {
    DepthCounters counters{.n_max = 4};
    DepthParams params;
    params.explore_interval = 8;
    for (int call = 1; call <= 32; ++call) {
        const std::int32_t cap = profit_cap(counters, setting(16), params, {.is_baseline_known = true});
        CHECK(cap == (call == 32 ? 16 : call % 8 == 0 ? 8 : 4));
    }
}

TEST_CASE("fringe explores the base") {
    DepthCounters counters{.n_max = 4};
    DepthParams params;
    params.explore_interval = 8;
    for (int call = 1; call <= 32; ++call) {
        CHECK(fringe_cap(counters, setting(16), params) == (call % 8 == 0 ? 16 : 4));
    }
}

TEST_CASE("an off slot probes after the interval") {
    DepthCounters counters{.n_max = 0};
    DepthParams params;
    params.probe_interval = 4;
    for (int call = 1; call <= 3; ++call) {
        CHECK(fringe_cap(counters, setting(16), params) == 0);
    }
    CHECK(fringe_cap(counters, setting(16), params) == 4);
    CHECK(counters.n_max == 4);
}

TEST_CASE("failed probes lengthen the wait, fourfold at most") {
    CHECK(probe_wait({.failed_probes = 1}, 32) == 64);
    CHECK(probe_wait({.failed_probes = 99}, 32) == 128);
    CHECK(probe_wait({.failed_probes = 99}, 2147483647) > 0);
}

TEST_CASE("the fringe lowers the depth by two at most") {
    Fringe fringe = fringe_with(6, 8, 8);
    CHECK(fringe.rate(8, 8, wide_fringe()) == doctest::Approx(.5));
    CHECK(fringe.decide(8, 8, wide_fringe()) == 6);
    CHECK(fringe.rate(6, 8, wide_fringe()) < 0.0);
}

TEST_CASE("a low fringe turns drafting off after some decisions") {
    DepthParams params = wide_fringe();
    params.off_dwell = 2;
    Fringe fringe = fringe_with(4, 8, 8);
    CHECK(fringe.decide(8, 8, params) == 8);
    CHECK(fringe.decide(8, 8, params) == 0);
}

TEST_CASE("the depth rises only when the deeper positions were reached, and are good enough") {
    CHECK(fringe_with(4, 4, 1).decide(4, 8, wide_fringe()) == 4);
    CHECK(fringe_with(4, 4, 3).decide(4, 8, wide_fringe()) == 4);
    CHECK(fringe_with(6, 6, 3).decide(4, 8, wide_fringe()) == 6);
}

TEST_CASE("a base of one stays one between the limits") {
    Fringe fringe = fringe_with(1, 1, 10);
    for (int i = 0; i < 10; ++i) {
        fringe.add(0, 1);
    }
    CHECK(fringe.decide(1, 1, wide_fringe()) == 1);
}
