// The table of following tokens that all slots share.
#include <doctest/doctest.h>

#include <cstdint>

#include "core/speculation/ngram_mod.h"
#include "ngram_texts.h"

using namespace paddock;

namespace {

constexpr NgramModLengths small_mod{.match = 4, .min = 3, .max = 6};

/// What a slot says after `text` while another one has said `written`.
Tokens draft_of_another(const Tokens& written, const Tokens& text, std::int32_t limit = no_limit) {
    NgramMod drafter(small_mod, 2);
    drafter.begin(1, written);
    return draft_after(drafter, text, limit);
}

}  // namespace

TEST_CASE("11 §6.5: the table is followed until an entry is empty") {
    CHECK(draft_of_another(run(10, 9), run(10, 4)) == run(14, 5));
}

TEST_CASE("11 §6.5: drafts end at max, also within what they drafted themselves") {
    CHECK(fresh_draft(NgramMod(small_mod, 1), repeated({1, 2, 3, 4, 5}, 3)) == Tokens{1, 2, 3, 4, 5, 1});
}

TEST_CASE("11 §6.5: fewer tokens than min are no draft") {
    CHECK(draft_of_another(run(10, 7), run(10, 4)).size() == 3);
    CHECK(draft_of_another(run(10, 6), run(10, 4)).empty());
    CHECK(draft_of_another(run(10, 9), run(10, 4), 2).empty());
}

TEST_CASE("11 §6.5: the newest follower wins") {
    const Tokens text = joined({run(10, 9), run(10, 4), run(50, 5), run(10, 4)});
    CHECK(fresh_draft(NgramMod(small_mod, 1), text) == joined({run(50, 5), {10}}));
}

TEST_CASE("11 §6.5: the table is shared by the slots") {
    const Tokens text = run(10, 20);
    NgramMod drafter(small_mod, 2);
    drafter.begin(0, text);
    CHECK(draft_after(drafter, run(10, 4), no_limit, 1) == run(14, 6));
}

TEST_CASE("11 §6.5: history is added in steps of 32 tokens") {
    const Tokens start = run(1000, 10);
    const Tokens text = joined({start, run(10, 32)});
    NgramMod drafter(small_mod, 2);
    drafter.begin(0, start);
    draft_after(drafter, joined({start, run(10, 31), {0}}));
    CHECK(draft_after(drafter, run(10, 4), no_limit, 1).empty());
    draft_after(drafter, joined({text, {0}}));
    CHECK(draft_after(drafter, run(10, 4), no_limit, 1) == run(14, 6));
}

TEST_CASE("11 §6.5: five poor drafts in a row empty the table") {
    NgramMod drafter(small_mod, 2);
    drafter.begin(0, run(10, 20));
    const auto poor = [&](int times) {
        for (int i = 0; i < times; ++i) {
            drafter.accepted(1, 8, 1, true);
        }
    };
    poor(4);
    drafter.accepted(1, 8, 2, true);
    poor(4);
    drafter.accepted(1, 8, 0, false);
    CHECK(drafter.n_used() == 16);
    poor(1);
    CHECK(drafter.n_used() == 0);
}

TEST_CASE("11 §6.5: after that every slot adds its text again") {
    const Tokens text = joined({run(10, 40), run(10, 4)});
    NgramMod drafter(small_mod, 2);
    drafter.begin(0, text);
    for (int i = 0; i < 5; ++i) {
        drafter.accepted(1, 8, 1, true);
    }
    CHECK(draft_after(drafter, text) == run(14, 6));
}

TEST_CASE("11 §6.5: a table that is fuller than a quarter is emptied at begin") {
    NgramMod drafter(small_mod, 2);
    // The last token alone decides between four million entries, so that every n-gram has its own.
    drafter.begin(0, random_text(5, 1 << 20, 1 << 30));
    CHECK(drafter.n_used() > 900'000);
    CHECK(drafter.n_used() <= (1U << 20));
    drafter.begin(1, random_text(6, 1 << 19, 1 << 30));
    CHECK(drafter.n_used() > (1U << 20));
    drafter.begin(0, run(10, 20));
    CHECK(drafter.n_used() == 16);
}

TEST_CASE("11 §6.5: an entry that is written again counts once") {
    NgramMod drafter(small_mod, 1);
    drafter.begin(0, Tokens(1000, 7));
    CHECK(drafter.n_used() == 1);
}

TEST_CASE("ngram-mod: a text that was cut back goes on in another way") {
    NgramMod drafter(small_mod, 1);
    drafter.begin(0, run(10, 200));
    draft_after(drafter, run(10, 20));
    CHECK(draft_after(drafter, joined({run(10, 20), run(500, 60), run(500, 4)})) == run(504, 6));
}
