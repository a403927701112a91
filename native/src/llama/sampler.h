// The sampler of one request: reasoning automaton, grammar, and libllama's chain (10 §23).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/best_logits.h"
#include "core/reasoning_automaton.h"
#include "core/sampling.h"
#include "llama/sampler_candidates.h"
#include "llama/sampler_chain.h"
#include "llama/sampler_grammar.h"
#include "llama/vocabulary.h"

namespace paddock {

class LlamaSampler final : public Sampler {
  public:
    /// Takes resolved parameters. Throws std::invalid_argument as SamplerMaker::make does.
    LlamaSampler(std::shared_ptr<const LlamaVocabulary> vocabulary, const VocabularyFacts& facts,
                 const SamplingParams& params, std::uint32_t seed);

    Token sample(std::span<const float> logits) override;
    void accept(Token token, bool generated) override;
    void reset() override;
    TokenRecord record(std::span<const float> logits, Token chosen, std::int32_t n_top,
                       bool post_sampling) override;
    bool in_reasoning() const override;
    bool last_was_forced() const override;
    bool force_end() override;
    std::int32_t forced_count() const override;
    bool has_distribution() const override;
    std::vector<TokenChance> distribution(std::span<const float> logits) override;
    double draw() override;
    std::int32_t n_best_needed() const override;
    void use_whole_rows(bool on) override;
    bool is_reasoning() const override;
    bool blocks_speculation(bool grammar_blocks) const override;
    bool is_preserved(Token token) const override;

  private:
    Token first_choice(std::span<const float> logits);
    Token choose();
    bool reduces() const { return reduction_.n_best > 0 && !takes_whole_rows_; }
    void fill(std::span<const float> logits);
    void fill_for_choice(std::span<const float> logits);
    void remember(Token token);
    bool grammar_applies() const;

    std::shared_ptr<const LlamaVocabulary> vocabulary_;
    SamplerHandle chain_;
    Candidates candidates_;
    std::optional<GrammarFilter> grammar_;
    std::optional<ReasoningAutomaton> reasoning_;
    /// Sorted.
    std::vector<Token> preserved_;

    /// Whether the chain ends in a draw from what its filters leave.
    bool draws_ = false;
    std::mt19937_64 verdicts_;

    Reduction reduction_;
    BestLogits best_;
    bool takes_whole_rows_ = false;
    /// Tokens whose logits the chain changes: those with a bias, then the recent ones, in a ring.
    std::vector<Token> touched_;
    std::size_t n_biased_ = 0;
    std::size_t next_recent_ = 0;
    /// Whether the candidates are what the chain leaves of the whole vocabulary.
    bool has_whole_rest_ = true;
    bool last_is_end_ = false;
    /// A token was accepted that the grammar forbids, which no token of `sample` is.
    bool left_grammar_ = false;
};

}  // namespace paddock
