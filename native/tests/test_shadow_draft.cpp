// What a draft that was not verified would have been worth.
#include <doctest/doctest.h>

#include <vector>

#include "core/speculation/shadow_draft.h"

using namespace paddock;

namespace {

struct Text {
    std::vector<Token> tokens{1, 2, 3};
    Token pending = 4;

    void grow(Token next) {
        tokens.push_back(pending);
        pending = next;
    }
};

bool is_outcome(const std::optional<ShadowDraft::Outcome>& found, std::int32_t told, std::int32_t accepted,
                std::int32_t examined) {
    return found && found->n_told == told && found->n_accepted == accepted && found->n_examined == examined;
}

}  // namespace

TEST_CASE("a draft that is compared tells each token once, until the first wrong one") {
    Text text;
    ShadowDraft shadow;
    shadow.open(std::vector<Token>{5, 6, 7, 8}, text.tokens.size(), 0);
    CHECK_FALSE(shadow.compare(text.tokens, text.pending));
    text.grow(5);
    CHECK(is_outcome(shadow.compare(text.tokens, text.pending), 0, 1, 1));
    CHECK_FALSE(shadow.compare(text.tokens, text.pending));
    text.grow(6);
    text.grow(9);
    text.grow(8);
    CHECK(is_outcome(shadow.compare(text.tokens, text.pending), 1, 2, 3));
    CHECK_FALSE(shadow.is_open());
}

TEST_CASE("a draft that is right to its end is closed there") {
    Text text;
    ShadowDraft shadow;
    shadow.open(std::vector<Token>{5, 6}, text.tokens.size(), 0);
    text.grow(5);
    text.grow(6);
    text.grow(7);
    CHECK(is_outcome(shadow.compare(text.tokens, text.pending), 0, 2, 2));
    CHECK_FALSE(shadow.is_open());
}

TEST_CASE("what was verified is not told again") {
    Text text;
    ShadowDraft shadow;
    shadow.open(std::vector<Token>{5, 6, 7, 8}, text.tokens.size(), 2);
    text.grow(5);
    SUBCASE("where that was wrong there is nothing to tell") {
        text.grow(9);
        CHECK_FALSE(shadow.compare(text.tokens, text.pending));
        CHECK_FALSE(shadow.is_open());
    }
    SUBCASE("else the rest is") {
        text.grow(6);
        text.grow(7);
        CHECK(is_outcome(shadow.compare(text.tokens, text.pending), 2, 3, 3));
        CHECK(shadow.is_open());
    }
}

TEST_CASE("an empty draft opens nothing, and a closed one tells nothing") {
    Text text;
    ShadowDraft shadow;
    shadow.open({}, text.tokens.size(), 0);
    CHECK_FALSE(shadow.is_open());
    shadow.open(std::vector<Token>{5}, text.tokens.size(), 0);
    shadow.close();
    text.grow(5);
    CHECK_FALSE(shadow.compare(text.tokens, text.pending));
}
