// Maps from n-grams to what followed them.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>

#include "core/speculation/ngram_map.h"
#include "ngram_texts.h"

using namespace paddock;

namespace {

NgramMapK map_k(std::int32_t min_hits = 1) { return {{.n = 3, .m = 5, .min_hits = min_hits}, 2}; }
NgramMapK4v map_k4v(std::int32_t min_hits = 1) { return {{.n = 3, .m = 5, .min_hits = min_hits}, 2}; }

/// What `drafter` says when the text grows by 1, 2, 3, … tokens a call, and a fresh one of the same text.
template <class Make>
void check_growth(Make make, const Tokens& text) {
    auto grown = make();
    std::size_t step = 1;
    for (std::size_t length = 1; length < text.size(); length += step++ % 7) {
        const Tokens beginning(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
        REQUIRE(draft_after(grown, beginning) == fresh_draft(make(), beginning));
    }
}

/// Cuts the text at several places and lets it go on in another way.
template <class Make>
void check_cuts(Make make) {
    auto drafter = make();
    Tokens text = random_text(7, 400, 2);
    draft_after(drafter, text);
    for (const std::size_t kept : {395U, 390U, 300U, 120U, 20U, 4U}) {
        text.resize(kept);
        REQUIRE(draft_after(drafter, text) == fresh_draft(make(), text));
        const Tokens more = random_text(static_cast<std::uint32_t>(kept), 90, 2);
        text.insert(text.end(), more.begin(), more.end());
        REQUIRE(draft_after(drafter, text) == fresh_draft(make(), text));
    }
}

}  // namespace

TEST_CASE("11 §6.2: what followed the key is drafted") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    CHECK(fresh_draft(map_k(), text) == run(10, 5));
}

TEST_CASE("11 §6.2: the newest occurrence with m tokens behind it counts") {
    const Tokens text = joined({{0}, keyed(10), keyed(20), key, run(30, 4), key});
    // 30 … 33, 1, 2 are behind the third occurrence, five of them in the text.
    CHECK(fresh_draft(map_k(), text) == joined({run(30, 4), {1}}));
    CHECK(fresh_draft(map_k(), joined({{0}, keyed(10), keyed(20), key, {30}, key})) == run(20, 5));
}

TEST_CASE("11 §6.2: nothing is drafted below 2n + m tokens") {
    CHECK(fresh_draft(map_k(), joined({{0}, keyed(10), key})).size() == 5);  // L = 11
    CHECK(fresh_draft(map_k(), joined({{0}, keyed(10), {3}})).empty());
    CHECK(fresh_draft(NgramMapK({.n = 1, .m = 5}, 1), joined({{0, 1}, run(10, 5), {1}})).size() == 5);  // 7
    CHECK(fresh_draft(NgramMapK({.n = 1, .m = 5}, 1), joined({{1}, run(10, 5), {1}})).empty());         // 6
}

TEST_CASE("11 §6.2: a key needs as many occurrences as min hits says") {
    const Tokens once = joined({{0}, keyed(10), {50}, key});
    const Tokens twice = joined({{0}, keyed(10), once, run(60, 9), key});
    CHECK(fresh_draft(map_k(2), once).empty());
    CHECK(fresh_draft(map_k(2), twice).size() == 5);
}

TEST_CASE("11 §6.2: later drafts are twice as long as what was accepted, at least two and at most m tokens") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    struct Case {
        std::int32_t n_accepted;
        std::size_t length;
    };
    for (const auto& [n_accepted, length] : {Case{2, 4}, Case{0, 2}, Case{1, 2}, Case{3, 5}, Case{5, 5}}) {
        draft_after(drafter, text);
        drafter.accepted(0, 5, n_accepted, true);
        CHECK(draft_after(drafter, text).size() == length);
    }
}

TEST_CASE("a draft that was cut says nothing of what was cut off") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    CHECK(draft_after(drafter, text, 1).size() == 1);
    drafter.accepted(0, 1, 1, true);
    CHECK(draft_after(drafter, text).size() == 5);
    drafter.accepted(0, 3, 1, true);
    CHECK(draft_after(drafter, text).size() == 2);
    // Whole now: twice as long comes next.
    drafter.accepted(0, 2, 2, true);
    CHECK(draft_after(drafter, text).size() == 4);

    auto counted = map_k4v();
    CHECK(draft_after(counted, text, 1).size() == 1);
    counted.accepted(0, 1, 1, true);
    CHECK(draft_after(counted, text).size() == 5);
}

TEST_CASE("11 §4.5: a draft that wasn't used changes nothing") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    draft_after(drafter, text);
    drafter.accepted(0, 5, 0, false);
    CHECK(draft_after(drafter, text).size() == 5);
}

TEST_CASE("11 §6.2: of keys in one bucket the first that was stored wins") {
    // Both keys end in the same 18 bits of hash: a token's upper bits don't reach the bucket.
    const Token twin = 3 + (1 << 18);
    const Tokens other{1, 2, twin};
    const Tokens text = joined({{0}, keyed(10), other, run(20, 5)});
    CHECK(fresh_draft(map_k(), joined({text, key})) == run(10, 5));
    CHECK(fresh_draft(map_k(), joined({text, other})).empty());
}

TEST_CASE("11 §6.4: a key is forgotten with the text that held it, and its length with it") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    draft_after(drafter, text);
    drafter.accepted(0, 5, 0, true);
    drafter.begin(0, std::span(text).first(5));
    CHECK(draft_after(drafter, text).size() == 5);
}

TEST_CASE("11 §6.4: a key that the shorter text still holds keeps its length") {
    const Tokens text = joined({{0}, keyed(10), run(50, 9), key});
    auto drafter = map_k();
    draft_after(drafter, text);
    drafter.accepted(0, 5, 0, true);
    drafter.begin(0, std::span(text).first(12));
    CHECK(draft_after(drafter, text).size() == 2);
}

TEST_CASE("11 §6.3: a single value is drafted") {
    CHECK(fresh_draft(map_k4v(), joined({{0}, keyed(10), keyed(10), key})) == run(10, 5));
}

TEST_CASE("11 §6.3: a value is drafted when it is twice as frequent as the others together") {
    const Tokens once = keyed(20);
    const Tokens twice = repeated(keyed(10), 2);
    CHECK(fresh_draft(map_k4v(), joined({{0}, twice, once, key})) == run(10, 5));
    CHECK(fresh_draft(map_k4v(), joined({{0}, keyed(10), once, key})).empty());
    CHECK(fresh_draft(map_k4v(), joined({{0}, twice, once, keyed(30), key})).empty());
    CHECK(fresh_draft(map_k4v(), joined({{0}, repeated(keyed(10), 4), once, keyed(30), key})) == run(10, 5));
}

TEST_CASE("11 §6.3: a fifth value isn't counted") {
    const Tokens four = joined({{0}, repeated(keyed(10), 6), keyed(20), keyed(30), keyed(40)});
    CHECK(fresh_draft(map_k4v(), joined({four, repeated(keyed(60), 9), key})) == run(10, 5));
}

TEST_CASE("11 §6.3: counts stop at 16380") {
    const Tokens lead = joined({{0}, repeated(keyed(10), 2 * 16380 + 2), repeated(keyed(20), 8191)});
    CHECK(fresh_draft(map_k4v(),
                      joined({{0}, repeated(keyed(10), 2 * 8191), repeated(keyed(20), 8190), key})) ==
          run(10, 5));
    CHECK(fresh_draft(map_k4v(), joined({lead, key})).empty());
}

TEST_CASE("11 §6.3: a key needs as many occurrences as min hits says") {
    CHECK(fresh_draft(map_k4v(3), joined({{0}, repeated(keyed(10), 2), key})).empty());
    CHECK(fresh_draft(map_k4v(3), joined({{0}, repeated(keyed(10), 3), key})) == run(10, 5));
}

TEST_CASE("11 §6.3: the length is ruled for each value") {
    const Tokens text = joined({{0}, repeated(keyed(10), 2), key});
    auto drafter = map_k4v();
    draft_after(drafter, text);
    drafter.accepted(0, 5, 1, true);
    CHECK(draft_after(drafter, text) == run(10, 2));
    const Tokens changed = joined({text, run(20, 5), repeated(keyed(20), 3), key});
    CHECK(draft_after(drafter, changed) == run(20, 5));
}

TEST_CASE("maps: a text that grows token by token gives the drafts of a fresh one") {
    const Tokens text = joined({random_text(3, 300, 2), extreme_text(200)});
    check_growth([] { return map_k(); }, text);
    check_growth([] { return map_k4v(); }, text);
}

TEST_CASE("maps: a text that was cut back gives the drafts of a fresh one") {
    check_cuts([] { return map_k(); });
    check_cuts([] { return map_k4v(); });
}

TEST_CASE("maps: another text at begin gives the drafts of a fresh one") {
    const Tokens text = joined({{0}, keyed(20), {50}, key});
    auto drafter = map_k4v();
    draft_after(drafter, joined({{0}, repeated(keyed(10), 5)}));
    drafter.begin(0, std::span(text).first(text.size() - 1));
    CHECK(draft_after(drafter, text) == run(20, 5));
}

TEST_CASE("maps: slots are apart") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    draft_after(drafter, text);
    const DraftRequest request{
        .slot = 1, .tokens = std::span(text).last(key.size()).first(2), .pending = 3, .limit = 9};
    CHECK(drafter.draft({&request, 1}).front().empty());
}

TEST_CASE("maps: a slot forgets at reset") {
    const Tokens text = joined({{0}, keyed(10), {50}, key});
    auto drafter = map_k();
    draft_after(drafter, text);
    drafter.accepted(0, 5, 0, true);
    drafter.reset(0);
    CHECK(draft_after(drafter, text).size() == 5);
}
