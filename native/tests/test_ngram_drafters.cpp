// The search for an earlier n-gram, what all n-gram drafters have in common, and how they are made.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/speculation/ngram_drafters.h"
#include "core/speculation/ngram_map.h"
#include "core/speculation/ngram_simple.h"
#include "ngram_texts.h"

using namespace paddock;

namespace {

constexpr std::int32_t long_text = 100'000;

NgramSimple simple() { return {{.n = 3, .m = 5}, 2}; }
NgramMapK map_k() { return {{.n = 3, .m = 5}, 2}; }
NgramMapK4v map_k4v() { return {{.n = 3, .m = 5}, 2}; }

}  // namespace

// ngram-simple

TEST_CASE("11 §6.1: what followed the pattern before is drafted") {
    const Tokens text = joined({{0}, keyed(10), run(50, 5), key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text) == run(10, 5));
}

TEST_CASE("11 §6.1: the newest occurrence counts") {
    const Tokens text = joined({{0}, keyed(10), keyed(20), key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text) == run(20, 5));
}

TEST_CASE("11 §6.1: nothing is drafted up to n + m + 1 tokens") {
    auto drafter = simple();
    CHECK(draft_after(drafter, joined({{0}, keyed(10), {1, 2, 3}})).size() == 5);  // L = 11
    CHECK(draft_after(drafter, joined({{0}, key, run(10, 3), key})).empty());      // L = 9
}

TEST_CASE("11 §6.1: an occurrence at position 0 doesn't count") {
    const Tokens text = joined({keyed(10), run(50, 5), key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text).empty());
}

TEST_CASE("11 §6.1: the draft ends with the text") {
    const Tokens text = joined({run(50, 8), key, {10}, key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text) == Tokens{10, 1, 2});  // the pending token isn't in the text
}

TEST_CASE("11 §6.1: fewer tokens than the pattern has are no draft") {
    const Tokens text = joined({run(50, 8), key, key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text).empty());
}

TEST_CASE("11 §6.1: a pattern that overlaps itself is found") {
    const Tokens text = joined({run(50, 5), {1, 1, 2, 1, 1, 2, 1, 1, 3, 7, 7, 7}, {1, 1, 3}});
    auto drafter = simple();
    CHECK(draft_after(drafter, text) == Tokens{7, 7, 7, 1, 1});
}

TEST_CASE("11 §6.1: the search agrees with one that tries every position") {
    auto drafter = simple();
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        const Tokens text = random_text(seed, 60, 3);
        const auto length = static_cast<std::int32_t>(text.size()) - 1;
        Tokens expected;
        for (std::int32_t j = length - 4; j >= 1; --j) {
            if (std::equal(text.end() - 3, text.end(), text.begin() + j)) {
                const std::int32_t end = std::min(length, j + 8);
                if (end - j - 3 >= 3) {
                    expected.assign(text.begin() + j + 3, text.begin() + end);
                }
                break;
            }
        }
        REQUIRE(draft_after(drafter, text) == expected);
    }
}

// All of them

TEST_CASE("11 §4.4: no draft is longer than its limit") {
    const Tokens text = joined({{0}, keyed(10), run(50, 5), key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text, 2) == run(10, 2));
    CHECK(draft_after(drafter, text, 0).empty());
    CHECK(fresh_draft(map_k(), text, 1) == run(10, 1));
}

TEST_CASE("11 §8.2: n_min and p_min of the request don't apply") {
    const Tokens text = joined({{0}, keyed(10), run(50, 5), key});
    auto drafter = map_k();
    const DraftRequest request{.tokens = std::span(text).first(text.size() - 1),
                               .pending = 3,
                               .limit = 9,
                               .n_min = 8,
                               .p_min = 1.0F};
    CHECK(drafter.draft({&request, 1}).front().size() == 5);
}

TEST_CASE("11 §6.7: a draft names its type and has no candidates") {
    const Tokens text = joined({{0}, keyed(10), run(50, 5), key});
    auto drafter = map_k4v();
    const DraftRequest request{
        .tokens = std::span(text).first(text.size() - 1), .pending = 3, .limit = 9, .temperature = 1.0F};
    const Draft draft = drafter.draft({&request, 1}).front();
    CHECK(draft.type == DraftType::ngram_map_k4v);
    CHECK(draft.candidates.empty());
}

TEST_CASE("drafters: one draft for each request, in their order") {
    const Tokens with = joined({{0}, keyed(10), run(50, 5), key});
    const Tokens without = run(50, 30);
    const std::vector<DraftRequest> requests{
        {.slot = 1, .tokens = without, .pending = 9, .limit = 4},
        {.slot = 0, .tokens = std::span(with).first(with.size() - 1), .pending = 3, .limit = 4}};
    auto drafter = map_k();
    const auto drafts = drafter.draft(requests);
    REQUIRE(drafts.size() == 2);
    CHECK(drafts[0].empty());
    CHECK(drafts[1].tokens == run(10, 4));
}

TEST_CASE("drafters: a draft ends before a token that stands for media") {
    const Tokens text = joined({{0}, key, {10, 11, media_placeholder, 12, 13}, run(50, 5), key});
    auto drafter = simple();
    CHECK(draft_after(drafter, text) == Tokens{10, 11});
    CHECK(fresh_draft(map_k(), text) == Tokens{10, 11});
}

TEST_CASE("drafters: hostile texts take no harm and little time") {
    SpeculationParams params;
    std::string reason;
    std::string detail;
    const std::vector<Tokens> texts{Tokens(long_text, 7),
                                    Tokens(long_text, std::numeric_limits<Token>::min()),
                                    extreme_text(long_text),
                                    joined({{8}, Tokens(long_text, 7), {8, 7}}),
                                    repeated({1, 2}, long_text / 2),
                                    Tokens{7}};
    for (const auto& [type, name] : draft_type_names) {
        const auto drafter = make_ngram_drafter(type, params, 1, 1000, reason, detail);
        if (!drafter) {
            continue;
        }
        for (const Tokens& text : texts) {
            drafter->begin(0, text);
            for (std::size_t kept = text.size(); kept > 0 && kept + 50 > text.size(); --kept) {
                const DraftRequest request{
                    .tokens = std::span(text).first(kept - 1), .pending = text[kept - 1], .limit = 64};
                REQUIRE(drafter->draft({&request, 1}).front().size() <= 64);
            }
            drafter->begin(0, {});
            const DraftRequest nothing{.tokens = {}, .pending = 7, .limit = 64};
            REQUIRE(drafter->draft({&nothing, 1}).front().size() <= 64);
        }
    }
}

// Making them

TEST_CASE("11 §3.1: every n-gram type can be made") {
    std::string reason;
    std::string detail;
    for (const auto& [type, name] : draft_type_names) {
        if (!is_model_drafter(type)) {
            const auto drafter = make_ngram_drafter(type, {}, 2, 1000, reason, detail);
            REQUIRE(drafter);
            CHECK(drafter->type() == type);
        }
    }
    CHECK(reason.empty());
}

TEST_CASE("11 §3.4: a model drafter isn't made here") {
    std::string reason;
    std::string detail;
    CHECK_FALSE(make_ngram_drafter(DraftType::draft_simple, {}, 2, 1000, reason, detail));
    CHECK(reason == "type-not-built");
}

TEST_CASE("11 §6: own lengths by default") {
    std::string reason;
    std::string detail;
    struct Case {
        DraftType type;
        std::int32_t own_min;
        std::int32_t own_max;
    };
    for (const auto& [type, own_min, own_max] :
         {Case{DraftType::ngram_simple, 0, 48}, Case{DraftType::ngram_map_k, 0, 48},
          Case{DraftType::ngram_map_k4v, 0, 48}, Case{DraftType::ngram_mod, 48, 64},
          Case{DraftType::ngram_cache, 0, 8}}) {
        const auto drafter = make_ngram_drafter(type, {}, 1, 1000, reason, detail);
        CHECK(drafter->own_min() == own_min);
        CHECK(drafter->own_max() == own_max);
    }
}

TEST_CASE("11 §6.5: a match below 16 is worth a warning") {
    SpeculationParams params;
    params.mod.match = 16;
    CHECK(ngram_warning(DraftType::ngram_mod, params).empty());
    params.mod.match = 15;
    CHECK(ngram_warning(DraftType::ngram_mod, params).find("is 15") != std::string::npos);
    CHECK(ngram_warning(DraftType::ngram_simple, params).empty());
}
