// A sampler without a model: the greatest logit, and notes of what it was asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/probabilities.h"
#include "core/sampling.h"

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
    /// Set by a test: what force_end answers and the reasoning state that is reported.
    bool in_reasoning = false;
    bool was_end_forced = false;
};

class FakeSampler final : public Sampler {
  public:
    explicit FakeSampler(std::shared_ptr<FakeSamplerNotes> notes) : notes_(std::move(notes)) {}

    Token sample(std::span<const float> logits) override {
        if (notes_->fails || logits.empty()) throw std::runtime_error("nothing to choose from");
        return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
    }
    void accept(Token token, bool generated) override {
        (generated ? notes_->generated : notes_->prompt).push_back(token);
    }
    void reset() override {
        ++notes_->n_resets;
        notes_->prompt.clear();
        notes_->generated.clear();
    }
    TokenRecord record(std::span<const float> logits, Token chosen, std::int32_t n_top, bool) override {
        return record_of(logits, chosen, n_top);
    }
    bool in_reasoning() const override { return notes_->in_reasoning; }
    bool last_was_forced() const override { return notes_->was_end_forced; }
    bool force_end() override {
        notes_->was_end_forced = notes_->in_reasoning;
        return notes_->in_reasoning;
    }
    bool is_preserved(Token token) const override {
        return std::ranges::find(notes_->params.preserved_tokens, token) !=
               notes_->params.preserved_tokens.end();
    }

  private:
    std::shared_ptr<FakeSamplerNotes> notes_;
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
