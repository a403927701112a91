// Adaptive depth over cycles and requests (11 §8.1, §15.6, §17.5, §17.9-17.10, §22 vectors 6, 29, 30, 35).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/speculation/depth_control.h"
#include "core/speculation/draft_counts.h"

using namespace paddock;

namespace {

constexpr DraftType model = DraftType::draft_simple;

DepthSetting setting(std::int32_t base = 3) { return {base, 0, 0.0F, 0.0F, "rejection", true, "profit"}; }

struct Bench {
    std::vector<SequenceId> ids;
    DepthControl control;

    explicit Bench(std::int32_t n_slots, const DepthParams& params = {}) : control(params, n_slots) {
        for (SequenceId id = 0; id < n_slots; ++id) {
            ids.push_back(id);
            control.begin(id, model, setting(), false);
        }
    }
    /// One cycle in which the first `share` tokens of a draft are right; the rows that it had.
    std::int32_t cycle(std::int32_t n_right = 64) {
        control.start_cycle(ids, 100);
        DepthControl::Cycle cycle{.is_pure = true, .n_memory_tokens = 100};
        std::int32_t deepest = 0;
        for (const SequenceId id : ids) {
            const std::int32_t cap = control.is_baseline_probe() ? 0 : control.cap(id, model, true);
            const std::int32_t accepted = std::min(cap, n_right);
            control.on_verified(id, model, cap, accepted, std::min(cap, accepted + 1), cap);
            cycle.rows += 1 + cap;
            cycle.n_drafting += cap > 0 ? 1 : 0;
            deepest = std::max(deepest, cap);
        }
        cycle.model_ms = 10.0 + cycle.rows;
        cycle.draft_ms = deepest;
        cycle.works = {{model, cycle.n_drafting, deepest, cycle.draft_ms}};
        control.end_cycle(cycle);
        return cycle.rows;
    }
};

}  // namespace

TEST_CASE("a look-ahead changes nothing") {
    Bench bench(1);
    bench.control.start_cycle(bench.ids, 100);
    CHECK(bench.control.cap(0, model, false) == 0);
    CHECK(bench.control.cap(0, model, false) == 0);
    CHECK(std::string(bench.control.view(0, model).state) == "unset");
    CHECK(bench.control.cap(0, model, true) == 0);
    CHECK(std::string(bench.control.view(0, model).state) == "warmup");
}

TEST_CASE("two slots from the start draft once the baseline is known") {
    Bench bench(2);
    for (int i = 0; i < DepthParams().min_samples; ++i) {
        CHECK(bench.cycle() == 2);
    }
    for (const std::int32_t rows : {4, 6, 8}) {
        CHECK(bench.cycle() == rows);
    }
}

TEST_CASE("a draft with side chains teaches what its main path was worth") {
    DepthControl control({}, 1);
    control.begin(0, model, setting(), false);
    for (int i = 0; i < 60; ++i) {
        control.start_cycle(std::vector<SequenceId>{0}, 100);
        const std::int32_t cap = control.is_baseline_probe() ? 0 : control.cap(0, model, true);
        control.on_verified(0, model, cap, cap, cap, cap);
        control.add_side_chains(0, cap, 0);
        const std::int32_t rows = 1 + 2 * cap;
        control.end_cycle({.is_pure = true,
                           .rows = rows,
                           .model_ms = 10.0 + rows,
                           .n_drafting = cap > 0 ? 1 : 0,
                           .n_memory_tokens = 100});
    }
    CHECK(control.view(0, model).depth == 3);
}

TEST_CASE("good drafts keep drafting on, bad ones turn it off") {
    Bench good(1);
    Bench bad(1);
    for (int i = 0; i < 60; ++i) {
        good.cycle(64);
        bad.cycle(0);
    }
    CHECK(good.control.view(0, model).depth == 3);
    CHECK(good.control.view(0, model).gain > 0.5);
    CHECK(bad.control.view(0, model).depth == 0);
    CHECK(good.control.changes()[0][3] == 1);
}

TEST_CASE("drafting costs what drafts were made, whatever is used of them") {
    for (const std::int32_t n_used : {0, 1}) {
        Bench bench(1);
        for (int i = 0; i < 20; ++i) {
            bench.cycle();
        }
        for (int i = 0; i < 40; ++i) {
            bench.control.start_cycle(bench.ids, 100);
            const std::int32_t cap =
                bench.control.is_baseline_probe() ? 0 : bench.control.cap(0, model, true);
            const std::int32_t used = std::min(cap, n_used);
            bench.control.on_verified(0, model, used, used, used, used);
            DepthControl::Cycle cycle{.is_pure = true, .rows = 1 + used, .n_memory_tokens = 100};
            cycle.model_ms = 10.0 + cycle.rows;
            cycle.draft_ms = 4.0 * cap;
            cycle.n_drafting = used > 0 ? 1 : 0;
            cycle.works = {{model, cap > 0 ? 1 : 0, cap, cycle.draft_ms}};
            bench.control.end_cycle(cycle);
        }
        CAPTURE(n_used);
        CHECK(bench.control.view(0, model).depth == 3);
        CHECK(bench.control.view(0, model).score == doctest::Approx(4000.0 / (14.0 + 3 * 4.0)).epsilon(0.02));
    }
}

TEST_CASE("what drafters made is counted before it is used") {
    std::vector<Draft> drafts(3);
    drafts[0].tokens.resize(4);
    drafts[2].tokens.resize(2);
    const DraftWork work = work_of(model, drafts, 12.0);
    CHECK(work.n_drafting == 2);
    CHECK(work.deepest == 4);
    CHECK(work.ms == 12.0);
}

TEST_CASE("a cycle without drafts renews the baseline at its interval") {
    DepthParams params;
    params.baseline_interval = 32;
    Bench bench(2, params);
    int n_probes = 0;
    for (int i = 0; i < 200; ++i) {
        const std::int32_t rows = bench.cycle();
        n_probes += bench.control.is_baseline_probe() ? 1 : 0;
        CHECK((!bench.control.is_baseline_probe() || rows == 2));
    }
    CHECK(n_probes >= 5);
    CHECK(n_probes <= 7);
    CHECK(bench.control.n_baseline_probes() == n_probes);
}

TEST_CASE("a drafter that is never right takes little more than a hundredth of the time") {
    Bench bench(1);
    for (int i = 0; i < 100; ++i) {
        bench.cycle(0);
    }
    std::int32_t rows = 0;
    for (int i = 0; i < 2000; ++i) {
        rows += bench.cycle(0);
    }
    CHECK(rows > 2000);
    // A drafted row takes 2 ms where a cycle takes 11.
    CHECK((rows - 2000) * 2 <= 0.012 * 2000 * 11);
}

TEST_CASE("another text starts from what drafts were worth so far, without a warm-up") {
    Bench bench(1);
    for (int i = 0; i < 60; ++i) {
        bench.cycle();
    }
    bench.control.begin(0, model, setting(), false);
    CHECK(bench.cycle() == 1);
    CHECK(bench.cycle() == 4);

    Bench bad(1);
    for (int i = 0; i < 60; ++i) {
        bad.cycle(0);
    }
    bad.control.begin(0, model, setting(), false);
    std::int32_t rows = 0;
    for (int i = 0; i < 20; ++i) {
        rows += bad.cycle(0);
    }
    CHECK(rows <= 24);
}

TEST_CASE("short requests take little more for trials than long ones") {
    Bench bench(1);
    for (int i = 0; i < 100; ++i) {
        bench.cycle(0);
    }
    std::int32_t n_drafted = 0;
    for (int request = 0; request < 100; ++request) {
        bench.control.begin(0, model, setting(), false);
        for (int i = 0; i < 10; ++i) {
            n_drafted += bench.cycle(0) - 1;
        }
    }
    CHECK(n_drafted >= 5);
    CHECK(n_drafted <= 90);
}

TEST_CASE("a text that changes is followed within 200 tokens") {
    for (const int before : {0, 64}) {
        Bench bench(1);
        for (int i = 0; i < 1000; ++i) {
            bench.cycle(before);
        }
        int n_tokens = 0;
        const std::int32_t wanted = before == 0 ? 3 : 0;
        while (bench.control.view(0, model).depth != wanted && n_tokens < 1000) {
            n_tokens += before == 0 ? bench.cycle(64) : (bench.cycle(0), 1);
        }
        CAPTURE(before);
        CHECK(n_tokens <= 200);
    }
}

TEST_CASE("a trial that finds nothing to draft costs nothing, and old costs hold up nobody") {
    Bench bench(1);
    const DraftType look_up = DraftType::ngram_simple;
    bench.control.begin(0, look_up, setting(), false);
    const auto cycle = [&](bool is_found, std::int32_t n_right) {
        bench.control.start_cycle(bench.ids, 100);
        const std::int32_t cap = bench.control.is_baseline_probe() ? 0 : bench.control.cap(0, look_up, true);
        const std::int32_t drafted = is_found ? cap : 0;
        const std::int32_t accepted = std::min(drafted, n_right);
        bench.control.on_verified(0, look_up, drafted, accepted, std::min(drafted, accepted + 1), drafted);
        bench.control.end_cycle({.is_pure = true,
                                 .rows = 1 + drafted,
                                 .model_ms = 11.0 + drafted,
                                 .n_drafting = drafted > 0 ? 1 : 0,
                                 .n_memory_tokens = 100});
        return 1 + accepted;
    };
    for (int i = 0; i < 60; ++i) {
        cycle(true, 0);
    }
    for (int i = 0; i < 1500; ++i) {
        cycle(false, 0);
    }
    int n_tokens = 0;
    while (bench.control.view(0, look_up).depth != 3 && n_tokens < 1000) {
        n_tokens += cycle(true, 64);
    }
    CHECK(n_tokens <= 100);
}

TEST_CASE("drafts that are right again and again are tried with twice the depth at once") {
    Bench bench(1);
    bench.control.begin(0, model, setting(32), false);
    int n_cycles = 0;
    while (bench.control.view(0, model).depth != 32 && n_cycles < 1000) {
        bench.cycle();
        ++n_cycles;
    }
    CHECK(n_cycles <= 40);
}

TEST_CASE("what was learnt stays for a like request only") {
    Bench bench(1);
    for (int i = 0; i < 60; ++i) {
        bench.cycle();
    }
    bench.control.end(0);
    bench.control.begin(0, model, setting(), true);
    CHECK(bench.control.view(0, model).depth == 3);
    bench.control.begin(0, model, setting(2), true);
    CHECK(std::string(bench.control.view(0, model).state) == "unset");
}

TEST_CASE("a slot that is forgotten starts anew") {
    Bench bench(1);
    for (int i = 0; i < 60; ++i) {
        bench.cycle();
    }
    bench.control.reset(0);
    CHECK(std::string(bench.control.view(0, model).state) == "unset");
}

TEST_CASE("without adaptive depth the base holds") {
    DepthControl control({}, 1);
    DepthSetting fixed = setting(7);
    fixed.adaptive = false;
    control.begin(0, model, fixed, false);
    control.start_cycle(std::vector<SequenceId>{0}, 0);
    CHECK(control.cap(0, model, true) == 7);
}

TEST_CASE("a depth below the shortest draft is none") {
    DepthControl control({}, 1);
    control.begin(0, DraftType::ngram_mod, {16, 48, 0.0F, 0.0F, "exact", false, "profit"}, false);
    control.start_cycle(std::vector<SequenceId>{0}, 0);
    CHECK(control.cap(0, DraftType::ngram_mod, true) == 0);
}

TEST_CASE("an off slot probes again when the text has become easy, and comes on") {
    Bench bench(1);
    for (int i = 0; i < 60; ++i) {
        bench.cycle(0);
    }
    for (int i = 0; i < 400; ++i) {
        bench.cycle(64);
    }
    CHECK(bench.control.view(0, model).depth == 3);
}

TEST_CASE("an n-gram drafter without drafts stays in warm-up and holds up nobody") {
    Bench bench(1);
    bench.control.begin(0, DraftType::ngram_simple, setting(48), false);
    for (int i = 0; i < 60; ++i) {
        bench.control.start_cycle(bench.ids, 100);
        bench.control.cap(0, DraftType::ngram_simple, true);
        bench.control.end_cycle({.is_pure = true, .rows = 1, .model_ms = 10.0, .n_memory_tokens = 100});
    }
    CHECK(std::string(bench.control.view(0, DraftType::ngram_simple).state) == "warmup");
    for (int i = 0; i < 60; ++i) {
        bench.cycle();
    }
    CHECK(bench.control.view(0, model).depth == 3);
}

TEST_CASE("slots that don't exist are left alone") {
    Bench bench(1);
    bench.control.begin(7, model, setting(), false);
    bench.control.reset(-1);
    bench.control.start_cycle(std::vector<SequenceId>{-1, 0, 9}, 0);
    CHECK(bench.control.cap(9, model, true) == 0);
    CHECK(bench.control.view(-1, model).depth == 0);
}
