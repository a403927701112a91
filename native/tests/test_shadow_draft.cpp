// What a draft that was not verified would have been worth.
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/speculation/shadow_draft.h"

using namespace paddock;

namespace {

/// A text that grows, and a draft of what follows it.
struct Text {
    std::vector<Token> tokens{1, 2, 3};
    Token pending = 4;
    ShadowDraft shadow;

    explicit Text(const std::vector<Token>& drafted, std::int32_t n_told = 0) {
        shadow.open(drafted, tokens.size(), n_told);
    }

    void grow(Token next) {
        tokens.push_back(pending);
        pending = next;
    }
    std::optional<ShadowDraft::Outcome> compare() { return shadow.compare(tokens, pending); }
};

bool is_outcome(const std::optional<ShadowDraft::Outcome>& found, std::int32_t told, std::int32_t accepted,
                std::int32_t examined) {
    return found && found->n_told == told && found->n_accepted == accepted && found->n_examined == examined;
}

}  // namespace

TEST_CASE("a draft that is compared tells each token once, until the first wrong one") {
    Text text({5, 6, 7, 8});
    CHECK_FALSE(text.compare());
    text.grow(5);
    CHECK(is_outcome(text.compare(), 0, 1, 1));
    CHECK_FALSE(text.compare());
    text.grow(6);
    text.grow(9);
    text.grow(8);
    CHECK(is_outcome(text.compare(), 1, 2, 3));
    CHECK_FALSE(text.shadow.is_open());
}

TEST_CASE("a draft that is right to its end is closed there") {
    Text text({5, 6});
    text.grow(5);
    text.grow(6);
    text.grow(7);
    CHECK(is_outcome(text.compare(), 0, 2, 2));
    CHECK_FALSE(text.shadow.is_open());
}

TEST_CASE("what was verified is not told again") {
    Text text({5, 6, 7, 8}, 2);
    text.grow(5);
    SUBCASE("where that was wrong there is nothing to tell") {
        text.grow(9);
        CHECK_FALSE(text.compare());
        CHECK_FALSE(text.shadow.is_open());
    }
    SUBCASE("else the rest is") {
        text.grow(6);
        text.grow(7);
        CHECK(is_outcome(text.compare(), 2, 3, 3));
        CHECK(text.shadow.is_open());
    }
}

TEST_CASE("an empty draft opens nothing, and a closed one tells nothing") {
    CHECK_FALSE(Text({}).shadow.is_open());
    Text text({5});
    text.shadow.close();
    text.grow(5);
    CHECK_FALSE(text.compare());
}
