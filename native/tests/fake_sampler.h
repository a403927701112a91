// A sampler without a model: the greatest logit, reasoning as in a real one, and notes of what it was asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/probabilities.h"
#include "core/reasoning_automaton.h"
#include "core/sampling.h"
#include "fake_vocabulary.h"

namespace paddock {

/// What a sampler was made with and what happened to it since.
struct FakeSamplerNotes {
    SamplingParams params;
    std::uint32_t seed_offset = 0;
    std::int32_t n_ctx_slot = 0;
    std::vector<Token> prompt;
    std::vector<Token> generated;
    std::int32_t n_resets = 0;
    /// Set by a test: the next call of sample throws.
    bool fails = false;
    /// Set by a test: choices are draws, with these numbers of the second stream; else each is 0.5.
    bool draws = false;
    std::vector<double> draws_to_come;
    bool blocks_speculation = false;
    /// Choices made while whole rows were asked for.
    std::int32_t n_whole_choices = 0;
};

class FakeSampler final : public Sampler {
  public:
    explicit FakeSampler(std::shared_ptr<FakeSamplerNotes> notes)
        : notes_(std::move(notes)), reasoning_(reasoning_of(notes_->params.reasoning)) {}

    Token sample(std::span<const float> logits) override {
        if (notes_->fails || logits.empty()) throw std::runtime_error("nothing to choose from");
        notes_->n_whole_choices += takes_whole_rows_ ? 1 : 0;
        if (const auto forced = reasoning_.forced_token()) return *forced;
        return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
    }
    void accept(Token token, bool generated) override {
        (generated ? notes_->generated : notes_->prompt).push_back(token);
        if (generated) reasoning_.accept(token, "");
    }
    void reset() override {
        ++notes_->n_resets;
        notes_->prompt.clear();
        notes_->generated.clear();
        reasoning_.reset();
    }
    TokenRecord record(std::span<const float> logits, Token chosen, std::int32_t n_top, bool) override {
        return record_of(logits, chosen, n_top);
    }
    bool in_reasoning() const override { return reasoning_.in_reasoning(); }
    bool last_was_forced() const override { return reasoning_.last_was_forced(); }
    bool force_end() override { return reasoning_.force_end(); }
    std::int32_t forced_count() const override {
        return static_cast<std::int32_t>(reasoning_.forced_count());
    }
    bool has_distribution() const override { return notes_->params.temperature > 0.0F && notes_->draws; }
    std::vector<TokenChance> distribution(std::span<const float> logits) override {
        std::vector<ScoredToken> candidates;
        for (const float logit : logits) {
            candidates.push_back({static_cast<Token>(candidates.size()), logit});
        }
        return chances_of(candidates);
    }
    double draw() override {
        if (notes_->draws_to_come.empty()) return 0.5;
        const double next = notes_->draws_to_come.front();
        notes_->draws_to_come.erase(notes_->draws_to_come.begin());
        return next;
    }
    /// As real ones: top-k alone, or the greatest logit.
    std::int32_t n_best_needed() const override {
        return notes_->params.temperature > 0.0F ? std::max(notes_->params.top_k, 0) : 1;
    }
    void use_whole_rows(bool on) override { takes_whole_rows_ = on; }
    bool is_reasoning() const override { return reasoning_.is_active(); }
    bool blocks_speculation(bool) const override {
        return notes_->blocks_speculation || reasoning_.forced_token().has_value();
    }
    bool is_preserved(Token token) const override {
        return std::ranges::find(notes_->params.preserved_tokens, token) !=
               notes_->params.preserved_tokens.end();
    }

  private:
    /// Tags of small letters, each of which is a token of the fake vocabulary. Without an end tag nothing is
    /// reasoning.
    static ReasoningAutomaton reasoning_of(const ReasoningParams& params) {
        if (params.end_tags.empty()) return {{}, -1, false};
        ReasoningTags tags{.start = letters(params.start_tag),
                           .ends = {},
                           .forced = letters(params.message + params.end_tags.front())};
        for (const std::string& end : params.end_tags) tags.ends.push_back(letters(end));
        return {std::move(tags), params.budget_tokens, params.starts_open};
    }
    static std::vector<Token> letters(std::string_view text) {
        std::vector<Token> tokens;
        for (const char letter : text) tokens.push_back(testing::first_letter + letter - 'a');
        return tokens;
    }

    std::shared_ptr<FakeSamplerNotes> notes_;
    ReasoningAutomaton reasoning_;
    bool takes_whole_rows_ = false;
};

class FakeSamplerMaker final : public SamplerMaker {
  public:
    /// One entry for each sampler made, oldest first; shared, so that a test can read it after it gave the
    /// maker away.
    using Log = std::shared_ptr<std::vector<std::shared_ptr<FakeSamplerNotes>>>;

    explicit FakeSamplerMaker(Log log = std::make_shared<Log::element_type>()) : log_(std::move(log)) {}

    std::unique_ptr<Sampler> make(const SamplingParams& params, std::uint32_t seed_offset,
                                  std::int32_t n_ctx_slot) const override {
        // Any text stands for a grammar that is none: core tests need a refusal, not a parser.
        if (params.grammar == "broken") throw std::invalid_argument("grammar: it can't be parsed");
        auto notes = std::make_shared<FakeSamplerNotes>();
        notes->params = params;
        notes->seed_offset = seed_offset;
        notes->n_ctx_slot = n_ctx_slot;
        log_->push_back(notes);
        return std::make_unique<FakeSampler>(std::move(notes));
    }

  private:
    Log log_;
};

}  // namespace paddock
