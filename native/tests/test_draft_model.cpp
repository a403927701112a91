#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "core/speculation/draft_candidates.h"
#include "core/speculation/draft_model.h"
#include "core/speculation/vocabulary_check.h"
#include "fake_context.h"
#include "fake_vocabulary.h"

using namespace paddock;
using paddock::testing::FakeContext;
using paddock::testing::FakeContextOptions;
using paddock::testing::FakeVocabulary;
using paddock::testing::token_end;

namespace {

constexpr std::int32_t n_vocab = 64;

/// A drafter whose guess is always the next number, until 20, after which the text ends.
FakeContextOptions counting() {
    FakeContextOptions options;
    options.next = [](const std::vector<Token>& tokens) -> std::optional<Token> {
        return tokens.back() < 20 ? tokens.back() + 1 : token_end;
    };
    return options;
}

struct Setup {
    explicit Setup(FakeContextOptions options = counting(), std::int32_t n_vocab_target = n_vocab)
        : context(std::move(options)), drafter(context, vocabulary, n_vocab_target, 4) {}

    /// The draft for one slot alone.
    Draft draft(const DraftRequest& request) { return drafter.draft({&request, 1}).front(); }

    FakeContext context;
    FakeVocabulary vocabulary{n_vocab};
    DraftModel drafter;
};

std::vector<Token> counted(Token from, std::size_t count) {
    std::vector<Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), from);
    return tokens;
}

std::size_t n_decoded(FakeContext& context) {
    std::size_t n_rows = 0;
    for (const auto& window : context.journal().windows()) {
        n_rows += window.rows.size();
    }
    return n_rows;
}

/// Equal to FakeVocabulary(64) but for what a test changes.
struct Dialect : FakeVocabulary {
    using FakeVocabulary::FakeVocabulary;
    std::int32_t type() const override { return kind; }
    bool adds_eos() const override { return adds_end; }
    Token bos() const override { return begin; }
    Token eos() const override { return end; }

    std::int32_t kind = 1;
    bool adds_end = false;
    Token begin = 1;
    Token end = 0;
};

std::string reason_of(const Dialect& target, const Dialect& drafter) {
    const auto mismatch = mismatch_of(target, drafter);
    return mismatch ? mismatch->reason : "";
}

}  // namespace

TEST_CASE("a draft is what the drafter itself would say next") {
    Setup setup;
    const Draft draft = setup.draft({.tokens = counted(5, 2), .pending = 7, .limit = 3});
    CHECK(draft.type == DraftType::draft_simple);
    CHECK(draft.tokens == counted(8, 3));
    CHECK(draft.candidates.empty());
}

TEST_CASE("the text, the pending token and all but the last drafted one are in the drafter's memory") {
    Setup setup;
    setup.draft({.slot = 2, .tokens = counted(5, 2), .pending = 7, .limit = 3});
    CHECK(setup.context.tokens(2) == counted(5, 5));
}

TEST_CASE("only tokens that differ from the last draft are decoded again") {
    Setup setup;
    setup.draft({.tokens = counted(5, 10), .pending = 15, .limit = 3});
    const std::size_t n_before = n_decoded(setup.context);
    std::vector<Token> text = counted(5, 12);  // 16 was accepted
    const Draft draft = setup.draft({.tokens = text, .pending = 4, .limit = 1});
    CHECK(draft.tokens == std::vector<Token>{5});
    CHECK(n_decoded(setup.context) - n_before == 1);
}

TEST_CASE("a draft that was right in full costs one token more than its own") {
    Setup setup;
    setup.draft({.tokens = counted(3, 5), .pending = 8, .limit = 3});
    const std::size_t n_windows = setup.context.journal().windows().size();
    setup.draft({.tokens = counted(3, 9), .pending = 12, .limit = 1});
    const auto windows = setup.context.journal().windows();
    REQUIRE(windows.size() == n_windows + 1);
    CHECK(windows.back().rows.size() == 2);
}

TEST_CASE("slots advance together, and a finished one drops out") {
    Setup setup;
    const std::vector<Token> first = counted(4, 3);
    const std::vector<Token> second = counted(8, 2);
    const DraftRequest requests[] = {{.slot = 0, .tokens = first, .pending = 7, .limit = 3},
                                     {.slot = 3, .tokens = second, .pending = 10, .limit = 2}};
    const std::vector<Draft> drafts = setup.drafter.draft(requests);
    CHECK(drafts[0].tokens == counted(8, 3));
    CHECK(drafts[1].tokens == counted(11, 2));
    std::vector<std::size_t> widths;
    for (const auto& window : setup.context.journal().windows()) {
        widths.push_back(window.rows.size());
    }
    CHECK(widths == std::vector<std::size_t>{7, 2, 1});
}

TEST_CASE("drafts do not depend on how rows fall into batches") {
    FakeContextOptions options = counting();
    options.facts.n_batch = 3;
    Setup setup(options);
    const std::vector<Token> text = counted(3, 4);
    const DraftRequest requests[] = {{.slot = 0, .tokens = text, .pending = 7, .limit = 2},
                                     {.slot = 1, .tokens = text, .pending = 9, .limit = 2}};
    const std::vector<Draft> drafts = setup.drafter.draft(requests);
    CHECK(drafts[0].tokens == counted(8, 2));
    CHECK(drafts[1].tokens == counted(10, 2));
}

TEST_CASE("a slot catches up on at most 2048 tokens in a call, and drafts when it is there") {
    FakeContextOptions options = counting();
    options.facts.n_ctx = options.facts.n_ctx_slot = 8192;
    options.facts.n_batch = 512;
    Setup setup(options);
    const std::vector<Token> text(5000, 6);
    const DraftRequest request{.tokens = text, .pending = 7, .limit = 2};
    CHECK(setup.draft(request).empty());
    CHECK(setup.context.tokens(0).size() == 2048);
    CHECK(setup.draft(request).empty());
    CHECK(setup.draft(request).tokens == counted(8, 2));
}

TEST_CASE("a slot that is behind does not keep another from drafting") {
    FakeContextOptions options = counting();
    options.facts.n_ctx = options.facts.n_ctx_slot = 8192;
    Setup setup(options);
    const std::vector<Token> behind(3000, 6);
    const std::vector<Token> text = counted(3, 4);
    const DraftRequest requests[] = {{.slot = 0, .tokens = behind, .pending = 7, .limit = 2},
                                     {.slot = 1, .tokens = text, .pending = 7, .limit = 2}};
    const std::vector<Draft> drafts = setup.drafter.draft(requests);
    CHECK(drafts[0].empty());
    CHECK(drafts[1].tokens == counted(8, 2));
}

TEST_CASE("with a temperature each token comes with the ten candidates that it was drawn from") {
    Setup setup;
    const Draft draft = setup.draft({.tokens = counted(5, 2), .pending = 7, .limit = 2, .temperature = 0.7F});
    REQUIRE(draft.candidates.size() == draft.tokens.size());
    const auto& candidates = draft.candidates.front();
    CHECK(candidates.size() == 10);
    CHECK(std::ranges::count(candidates, draft.tokens.front(), &DraftCandidate::token) == 1);
    double sum = 0.0;
    for (const DraftCandidate& candidate : candidates) {
        sum += std::exp(static_cast<double>(candidate.log_probability));
    }
    CHECK(sum == doctest::Approx(1.0));
}

TEST_CASE("with ranks the draft says what else might come, and how likely") {
    FakeContextOptions options = counting();
    options.second = [](const std::vector<Token>& tokens) {
        return std::optional<Token>(tokens.back() + 30);
    };
    Setup setup(options);
    const std::vector<Token> text = counted(5, 2);
    DraftRequest request{.tokens = text, .pending = 7, .limit = 2, .n_ranks = 3, .p_split = 0.1F};
    const Draft draft = setup.draft(request);
    CHECK(draft.tokens == counted(8, 2));
    REQUIRE(draft.side_chains.size() == 2);
    CHECK(draft.side_chains[0].hang_depth == 0);
    CHECK(draft.side_chains[0].tokens == std::vector<Token>{37});
    CHECK(draft.side_chains[1].hang_depth == 1);
    CHECK(draft.side_chains[1].tokens == std::vector<Token>{38});
    // Half a logit apart, and all others far behind: 0.62 and 0.38.
    CHECK(draft.side_chains[0].score == doctest::Approx(std::log(0.377)).epsilon(0.01));
    CHECK(draft.side_chains[1].score == doctest::Approx(std::log(0.622 * 0.377)).epsilon(0.01));
    SUBCASE("the second rank only, however unlikely the third is") {
        request.n_ranks = 2;
        request.p_split = 0.0F;
        CHECK(setup.draft(request).side_chains.size() == 2);
    }
    SUBCASE("nothing that is too unlikely") {
        request.p_split = 0.4F;
        CHECK(setup.draft(request).side_chains.empty());
    }
    SUBCASE("nothing unless asked") {
        request.n_ranks = 1;
        CHECK(setup.draft(request).side_chains.empty());
    }
}

TEST_CASE("the same start draws the same tokens, another one others") {
    std::vector<std::vector<Token>> draws;
    for (const std::uint64_t seed : {1U, 1U, 2U}) {
        Setup setup;
        const Draft draft = setup.draft(
            {.tokens = counted(5, 2), .pending = 7, .limit = 12, .temperature = 50.0F, .seed = seed});
        draws.push_back(draft.tokens);
    }
    CHECK(draws[0] == draws[1]);
    CHECK(draws[0] != draws[2]);
}

TEST_CASE("a drafter that is not sure enough stays silent") {
    Setup setup;
    const std::vector<Token> text = counted(5, 2);
    CHECK(setup.draft({.tokens = text, .pending = 7, .limit = 3, .p_min = 1.0F}).empty());
    CHECK(setup.draft({.tokens = text, .pending = 7, .limit = 3, .p_min = 0.9F}).size() == 3);
}

TEST_CASE("the end of the text is part of the draft and its last token") {
    Setup setup;
    const Draft draft = setup.draft({.tokens = counted(10, 8), .pending = 18, .limit = 8});
    CHECK(draft.tokens == std::vector<Token>{19, 20, token_end});
}

TEST_CASE("a draft that is too short is none") {
    Setup setup;
    CHECK(setup.draft({.tokens = counted(10, 8), .pending = 18, .limit = 8, .n_min = 4}).empty());
    CHECK(setup.draft({.tokens = counted(10, 8), .pending = 18, .limit = 8, .n_min = 3}).size() == 3);
}

TEST_CASE("drafts end where the drafter's memory of a slot does") {
    Setup setup;
    CHECK(setup.draft({.tokens = std::vector<Token>(126, 5), .pending = 7, .limit = 4}).size() == 2);
    CHECK(setup.draft({.tokens = std::vector<Token>(128, 5), .pending = 7, .limit = 4}).empty());
}

TEST_CASE("tokens that the drafter does not have are never fed to it") {
    Setup setup;
    for (const Token unknown : {media_placeholder, n_vocab}) {
        CHECK(setup.draft({.tokens = {}, .pending = unknown, .limit = 4}).empty());
        const std::vector<Token> text{5, unknown, 6};
        CHECK(setup.draft({.tokens = text, .pending = 7, .limit = 4}).empty());
    }
    CHECK(setup.context.journal().windows().empty());
}

TEST_CASE("tokens that the target does not have are never drafted") {
    FakeContextOptions options;
    options.next = [](const std::vector<Token>&) { return std::optional<Token>(60); };
    Setup setup(options, 40);
    const Draft draft = setup.draft({.tokens = counted(5, 2), .pending = 7, .limit = 4});
    CHECK(draft.size() == 4);
    CHECK(std::ranges::all_of(draft.tokens, [](Token token) { return token < 40; }));
}

TEST_CASE("a decode error drops the drafts of the call, and the next call starts anew") {
    Setup setup;
    const std::vector<Token> text = counted(5, 4);
    const DraftRequest request{.tokens = text, .pending = 9, .limit = 3};
    setup.context.options().codes = {0, -3};
    CHECK(setup.draft(request).empty());
    CHECK(setup.context.tokens(0).empty());
    CHECK(setup.draft(request).tokens == counted(10, 3));
    CHECK(setup.drafter.is_usable());
}

TEST_CASE("three errors in a row end the drafter, three with a success between them do not") {
    const DraftRequest request{.tokens = {}, .pending = 9, .limit = 1};
    Setup broken;
    broken.context.options().codes = {-3, 2, -3};
    Setup shaky;
    shaky.context.options().codes = {-3, -3, 0, -3, -3};
    for (int i = 0; i < 5; ++i) {
        broken.draft(request);
        shaky.draft(request);
    }
    CHECK(!broken.drafter.is_usable());
    CHECK(broken.drafter.reason() == std::string("draft-decode-failed"));
    CHECK(broken.context.journal().windows().size() == 3);
    CHECK(shaky.drafter.is_usable());
}

TEST_CASE("slots that do not draft give way when shared memory is full") {
    FakeContextOptions options = counting();
    options.facts.kv_unified = true;
    options.facts.n_ctx = options.facts.n_ctx_slot = 128;
    Setup setup(options);
    setup.draft({.slot = 0, .tokens = std::vector<Token>(100, 5), .pending = 7, .limit = 1});
    const Draft draft =
        setup.draft({.slot = 1, .tokens = std::vector<Token>(60, 5), .pending = 7, .limit = 2});
    CHECK(draft.tokens == counted(8, 2));
    CHECK(setup.context.tokens(0).empty());
}

TEST_CASE("memory without room costs a draft, but not the drafter") {
    FakeContextOptions options = counting();
    options.facts.kv_unified = true;
    options.facts.n_ctx = options.facts.n_ctx_slot = 128;
    Setup setup(options);
    const std::vector<Token> text(100, 5);
    const DraftRequest requests[] = {{.slot = 0, .tokens = text, .pending = 7, .limit = 1},
                                     {.slot = 1, .tokens = text, .pending = 7, .limit = 1}};
    for (int i = 0; i < 4; ++i) {
        const std::vector<Draft> drafts = setup.drafter.draft(requests);
        CHECK(drafts[0].empty());
        CHECK(drafts[1].empty());
    }
    CHECK(setup.drafter.is_usable());
}

TEST_CASE("a memory that refuses a cut is read anew") {
    FakeContextOptions options = counting();
    options.refuses_partial_removal = true;
    Setup setup(options);
    setup.draft({.tokens = counted(5, 4), .pending = 9, .limit = 3});
    CHECK(setup.draft({.tokens = counted(5, 4), .pending = 12, .limit = 2}).tokens == counted(13, 2));
}

TEST_CASE("a slot that was reset holds nothing") {
    Setup setup;
    setup.draft({.tokens = counted(5, 4), .pending = 9, .limit = 3});
    setup.drafter.reset(0);
    CHECK(setup.context.tokens(0).empty());
    CHECK(setup.draft({.tokens = counted(5, 4), .pending = 9, .limit = 3}).tokens == counted(10, 3));
}

TEST_CASE("the greatest logits come sorted, and those that are no numbers are left out") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> logits{1.0F, NAN, 3.0F, infinity, -infinity, 3.0F, -2.0F};
    std::vector<Token> tokens;
    for (const RankedLogit& ranked : best_logits(logits)) {
        tokens.push_back(ranked.token);
    }
    CHECK(tokens == std::vector<Token>{2, 5, 0, 6});
    CHECK(best_logits(std::vector<float>{NAN, infinity}).empty());
}

TEST_CASE("of many logits the ten greatest are kept") {
    std::vector<float> logits(1000);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        logits[i] = static_cast<float>((i * 577) % 1000);
    }
    const std::vector<RankedLogit> best = best_logits(logits);
    REQUIRE(best.size() == 10);
    for (std::size_t i = 0; i < best.size(); ++i) {
        CHECK(best[i].logit == static_cast<float>(999 - i));
    }
}

TEST_CASE("a temperature flattens candidates, and none moves the top probability") {
    const std::vector<RankedLogit> best{{.token = 4, .logit = 2.0F}, {.token = 7, .logit = 1.0F}};
    CHECK(softmax(best, 0.5F)[1].log_probability == doctest::Approx(-std::log(1.0 + std::exp(2.0))));
    CHECK(top_probability(best) == doctest::Approx(1.0 / (1.0 + std::exp(-1.0))));
}

TEST_CASE("a number falls on candidates by their share") {
    const std::vector<RankedLogit> best{{.token = 4, .logit = 1.0F}, {.token = 7, .logit = 1.0F}};
    const std::vector<DraftCandidate> candidates = softmax(best, 1.0F);
    CHECK(drawn(candidates, 0.0) == 4);
    CHECK(drawn(candidates, 0.49) == 4);
    CHECK(drawn(candidates, 0.51) == 7);
}

TEST_CASE("a drafter of the same family fits, also when up to 128 tokens longer or shorter") {
    CHECK(reason_of(Dialect(64), Dialect(64)).empty());
    CHECK(reason_of(Dialect(64), Dialect(192)).empty());
    CHECK(reason_of(Dialect(192), Dialect(64)).empty());
}

TEST_CASE("each difference of vocabularies has its reason") {
    Dialect other(64);
    SUBCASE("type") {
        other.kind = 2;
        CHECK(reason_of(Dialect(64), other) == "vocab-type");
    }
    SUBCASE("one adds BOS") { CHECK(reason_of(Dialect(64), Dialect(64, true)) == "vocab-bos"); }
    SUBCASE("one adds EOS") {
        other.adds_end = true;
        CHECK(reason_of(Dialect(64), other) == "vocab-eos");
    }
    SUBCASE("size") { CHECK(reason_of(Dialect(64), Dialect(193)) == "vocab-size"); }
    SUBCASE("text") { CHECK(reason_of(Dialect(64), Dialect(64, false, {{5, "X"}})) == "vocab-text"); }
}

TEST_CASE("end tokens that are not added by themselves may differ, as may the first few texts") {
    Dialect other(64, false, {{4, "X"}});
    other.begin = 3;
    other.end = 3;
    CHECK(reason_of(Dialect(64), other).empty());
}

TEST_CASE("BOS tokens that are added must be the same") {
    Dialect other(64, true);
    other.begin = 3;
    CHECK(reason_of(Dialect(64, true), other) == "vocab-bos");
}

TEST_CASE("a mismatch names both sides") {
    const auto mismatch = mismatch_of(Dialect(64), Dialect(193));
    REQUIRE(mismatch);
    CHECK(mismatch->detail == "the target has 64 tokens, the drafter 193; they may differ by 128");
}
