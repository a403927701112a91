#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "core/speculation/verification.h"
#include "fake_sampler.h"

using namespace paddock;

namespace {

/// Logits whose greatest is that of `token`.
std::vector<float> row_for(Token token, std::size_t n_vocab = 16) {
    std::vector<float> logits(n_vocab, 0.0F);
    logits[static_cast<std::size_t>(token)] = 10.0F;
    return logits;
}

std::vector<float> row_of(const std::map<Token, double>& chances, std::size_t n_vocab = 16) {
    std::vector<float> logits(n_vocab, -std::numeric_limits<float>::infinity());
    for (const auto& [token, chance] : chances) {
        logits[static_cast<std::size_t>(token)] = static_cast<float>(std::log(chance));
    }
    return logits;
}

Draft draft_of(std::vector<Token> tokens, std::vector<std::vector<DraftCandidate>> candidates = {}) {
    return {
        .type = DraftType::draft_simple, .tokens = std::move(tokens), .candidates = std::move(candidates)};
}

DraftCandidate candidate(Token token, double chance) {
    return {.token = token, .log_probability = static_cast<float>(std::log(chance))};
}

struct Check {
    std::shared_ptr<FakeSamplerNotes> notes = std::make_shared<FakeSamplerNotes>();
    FakeSampler sampler{notes};
    std::vector<Token> emitted;
    /// The request ends with this many tokens.
    std::size_t most = 100;
    /// The sampler blocks from this many tokens on.
    std::size_t blocks_at = 100;

    Verified run(const Draft& draft, const std::vector<std::vector<float>>& rows,
                 VerifyMode mode = VerifyMode::exact) {
        return verify(sampler, {.draft = draft,
                                .mode = mode,
                                .temperature = 1.0F,
                                .grammar_blocks = false,
                                .logits =
                                    [&](std::int32_t row) {
                                        return std::span<const float>(rows[static_cast<std::size_t>(row)]);
                                    },
                                .emit =
                                    [&](Token token, std::span<const float>) {
                                        emitted.push_back(token);
                                        notes->blocks_speculation = emitted.size() >= blocks_at;
                                        return emitted.size() < most;
                                    }});
    }

    void draws_from(std::vector<double> numbers) {
        notes->draws = true;
        notes->params.temperature = 1.0F;
        notes->draws_to_come = std::move(numbers);
    }
};

}  // namespace

TEST_CASE("a draft that is right throughout gives one token more") {
    Check check;
    const Verified found = check.run(draft_of({7, 8}), {row_for(7), row_for(8), row_for(9)});
    CHECK(check.emitted == std::vector<Token>{7, 8, 9});
    CHECK(found.n_accepted == 2);
    CHECK(found.counts.exact == 2);
    CHECK(found.counts.bonus == 1);
    CHECK(found.n_covered == 2);
}

TEST_CASE("the token that replaces a wrong one is the last") {
    Check check;
    const Verified found = check.run(draft_of({7, 8, 9}), {row_for(7), row_for(8), row_for(5), row_for(6)});
    CHECK(check.emitted == std::vector<Token>{7, 8, 5});
    CHECK(found.n_accepted == 2);
    CHECK(found.n_examined == 3);
    CHECK(found.n_covered == 3);
    CHECK(found.counts.reject == 1);
    CHECK(found.counts.bonus == 0);
}

TEST_CASE("what ends the request leaves the rest of the draft unread") {
    Check check;
    check.most = 1;
    const Verified found = check.run(draft_of({7, 8, 9}), {row_for(7), row_for(8), row_for(9), row_for(6)});
    CHECK(check.emitted == std::vector<Token>{7});
    CHECK(!found.goes_on);
    CHECK(found.n_accepted == 1);
    CHECK(found.n_examined == 1);
    CHECK(found.n_covered == 1);
}

TEST_CASE("a sampler that blocks ends the loop without a bonus") {
    Check check;
    check.blocks_at = 2;
    const Verified found = check.run(draft_of({1, 2, 3}), {row_for(1), row_for(2), row_for(3), row_for(4)});
    CHECK(check.emitted == std::vector<Token>{1, 2});
    CHECK(found.goes_on);
    CHECK(found.n_accepted == 2);
    CHECK(found.counts.bonus == 0);
}

TEST_CASE("match-first takes what was sampled, or the draft by its chance") {
    const Draft draft = draft_of({7, 8}, {{{.token = 7, .log_probability = -0.5F}}, {}});
    // Of 5 and 7, with a logarithm of the chance of 7 of -1.
    const std::vector<float> row = row_of({{5, 1.0 - std::exp(-1.0)}, {7, std::exp(-1.0)}});
    SUBCASE("by its chance") {
        Check check;
        check.draws_from({0.5});
        const Verified found = check.run(draft, {row, row_for(8), row_for(9)}, VerifyMode::match_first);
        CHECK(found.counts.prob_accept == 1);
        CHECK(check.emitted.front() == 7);
    }
    SUBCASE("not by its chance") {
        Check check;
        check.draws_from({0.7});
        const Verified found = check.run(draft, {row, row_for(8), row_for(9)}, VerifyMode::match_first);
        CHECK(found.counts.reject == 1);
        CHECK(check.emitted == std::vector<Token>{5});
    }
    SUBCASE("a chance above 1 is none") {
        Check check;
        check.draws_from({0.0});
        const Draft broken = draft_of({7, 8}, {{{.token = 7, .log_probability = 0.1F}}, {}});
        const Verified found = check.run(broken, {row, row_for(8), row_for(9)}, VerifyMode::match_first);
        CHECK(check.emitted == std::vector<Token>{5});
        CHECK(found.counts.no_prob == 1);
    }
}

TEST_CASE("a rejected token is replaced by what the drafter underrates") {
    const Draft draft = draft_of({7}, {{candidate(7, 0.5), candidate(5, 0.5)}});
    const std::vector<float> row = row_of({{7, 0.2}, {5, 0.8}});
    SUBCASE("accepted below 0.4") {
        Check check;
        check.draws_from({0.39});
        check.run(draft, {row, row_for(9)}, VerifyMode::rejection);
        CHECK(check.emitted == std::vector<Token>{7, 9});
    }
    SUBCASE("rejected above") {
        Check check;
        check.draws_from({0.41, 0.0});
        const Verified found = check.run(draft, {row, row_for(9)}, VerifyMode::rejection);
        CHECK(check.emitted == std::vector<Token>{5});
        CHECK(found.counts.reject == 1);
    }
}

TEST_CASE("rejection keeps the distribution of plain decoding") {
    // Drafters that overrate, underrate and miss tokens; the sum of squares that chance alone exceeds once in
    // a million times, for five degrees of freedom, is 35.9.
    const std::map<Token, double> target{{1, 0.35}, {2, 0.25}, {3, 0.2}, {4, 0.1}, {5, 0.06}, {6, 0.04}};
    const std::vector<std::vector<DraftCandidate>> drafters{
        {candidate(1, 0.9), candidate(2, 0.1)},
        {candidate(4, 0.5), candidate(6, 0.5)},
        {candidate(1, 0.35), candidate(2, 0.25), candidate(3, 0.2), candidate(9, 0.2)},
        {candidate(9, 1.0)},
    };
    constexpr int n_draws = 40000;
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> uniform;
    for (const auto& drafter : drafters) {
        std::map<Token, int> counts;
        for (int i = 0; i < n_draws; ++i) {
            double left = uniform(random);
            Token drawn = drafter.back().token;
            for (const DraftCandidate& entry : drafter) {
                left -= std::exp(static_cast<double>(entry.log_probability));
                if (left < 0.0) {
                    drawn = entry.token;
                    break;
                }
            }
            Check check;
            check.draws_from({uniform(random), uniform(random)});
            check.run(draft_of({drawn}, {drafter}), {row_of(target), row_for(12)}, VerifyMode::rejection);
            ++counts[check.emitted.front()];
        }
        double squares = 0.0;
        int n_expected = 0;
        for (const auto& [token, chance] : target) {
            const double expected = chance * n_draws;
            squares += (counts[token] - expected) * (counts[token] - expected) / expected;
            n_expected += counts[token];
        }
        CHECK(n_expected == n_draws);
        CHECK(squares < 35.9);
    }
}

TEST_CASE("a mode that compares chances needs a draw and a draft that says its own") {
    Check check;
    const Draft with = draft_of({1}, {{candidate(1, 1.0)}});
    CHECK(mode_for(VerifyMode::rejection, with, check.sampler) == VerifyMode::exact);
    check.draws_from({});
    CHECK(mode_for(VerifyMode::rejection, with, check.sampler) == VerifyMode::rejection);
    CHECK(mode_for(VerifyMode::rejection, draft_of({1}), check.sampler) == VerifyMode::exact);
}
