// How the next token is chosen: the parameters of a request, and the sampler that the scheduler drives.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/types.h"

namespace paddock {

struct GrammarTrigger {
    enum class Kind { token, word, pattern, pattern_full };
    Kind kind = Kind::word;
    /// The text of a word or pattern.
    std::string value;
    /// The token of kind `token`.
    Token token = -1;
};

/// Budget of the reasoning automaton (10 §23.3); inactive while `end_tags` is empty.
struct ReasoningParams {
    /// Texts that start reasoning, and those that end it; the first end tag is the one that is forced.
    std::string start_tag;
    std::vector<std::string> end_tags;
    /// -1 never expires, 0 forces the end at once, else tokens of reasoning.
    std::int32_t budget_tokens = -1;
    /// Said before the end tag when the budget is used up.
    std::string message;
    /// The prompt ended inside reasoning, so that counting starts with the first token.
    bool starts_open = false;
    /// The request may be told to end its reasoning (12 §8.8).
    bool controllable = false;
};

/// Defaults are llama-server's (15 §6 lists the names that clients use).
struct SamplingParams {
    /// -1: random. Held as 64 bits so that every unsigned 32-bit seed is representable.
    std::int64_t seed = -1;
    /// Names of the chain in order: penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature.
    std::vector<std::string> samplers{"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                                      "top_p",     "min_p", "xtc",         "temperature"};
    float temperature = 0.8F;
    float dynatemp_range = 0.0F;
    float dynatemp_exponent = 1.0F;
    std::int32_t top_k = 40;
    float top_p = 0.95F;
    float min_p = 0.05F;
    float top_n_sigma = -1.0F;
    float typical_p = 1.0F;
    float xtc_probability = 0.0F;
    float xtc_threshold = 0.1F;
    /// Tokens looked back; -1: slot context.
    std::int32_t repeat_last_n = 64;
    float repeat_penalty = 1.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    float dry_multiplier = 0.0F;
    float dry_base = 1.75F;
    std::int32_t dry_allowed_length = 2;
    std::int32_t dry_penalty_last_n = -1;
    std::vector<std::string> dry_sequence_breakers{"\n", ":", "\"", "*"};
    std::int32_t mirostat = 0;
    float mirostat_tau = 5.0F;
    float mirostat_eta = 0.1F;
    float adaptive_target = -1.0F;
    float adaptive_decay = 0.9F;
    std::int32_t min_keep = 0;
    bool ignore_eos = false;
    /// A bias of -inf forbids the token.
    std::vector<std::pair<Token, float>> logit_bias;
    std::string grammar;
    bool grammar_lazy = false;
    std::vector<GrammarTrigger> grammar_triggers;
    /// Tokens whose special text is shown (10 §16.1).
    std::vector<Token> preserved_tokens;
    ReasoningParams reasoning;
};

/// One candidate of a probability record (10 §17).
struct TokenProbability {
    Token token = -1;
    std::string piece;
    /// In [0, 1].
    float probability = 0.0F;
};

struct TokenRecord {
    TokenProbability chosen;
    /// Sorted descending.
    std::vector<TokenProbability> top;
};

/// How likely a choice is.
struct TokenChance {
    Token token = -1;
    /// In (0, 1].
    double probability = 0.0;
};

/// Chooses tokens for one request (10 §23). Used by the decode thread only.
class Sampler {
  public:
    virtual ~Sampler() = default;

    /// The token chosen at a row; `logits` has one value for each token of the vocabulary. Throws
    /// std::invalid_argument when the request itself leaves nothing to choose, and
    /// std::runtime_error when nothing can be chosen.
    virtual Token sample(std::span<const float> logits) = 0;

    /// Takes a token into account; `generated` is false for tokens of the prompt (10 §23.4).
    virtual void accept(Token token, bool generated) = 0;

    /// Back to the state before any token (10 §23.5).
    virtual void reset() = 0;

    /// Probability record of the token sampled last from these logits (10 §17.1-17.2).
    virtual TokenRecord record(std::span<const float> logits, Token chosen, std::int32_t n_top,
                               bool post_sampling) = 0;

    /// Whether the token accepted last belongs to reasoning, and whether it was forced (10 §16.9).
    virtual bool in_reasoning() const = 0;
    virtual bool last_was_forced() const = 0;

    /// Begin to force the end of reasoning; false when it isn't in reasoning (10 §23.3).
    virtual bool force_end() = 0;
    /// Tokens that forcing it takes; 0: there is nothing to force.
    virtual std::int32_t forced_count() const = 0;

    /// Whether the next choice is a draw from `distribution`; not so for the greatest logit, for samplers
    /// that select by themselves, and under a grammar (11 §10.1).
    virtual bool has_distribution() const = 0;
    /// What the next token is drawn from at a row: probabilities above 0 that sum to 1 (11 §10.2). Throws as
    /// `sample` does. Only the random stream moves on.
    virtual std::vector<TokenChance> distribution(std::span<const float> logits) = 0;
    /// A number in [0, 1) of the request's second random stream (10 §23.7).
    virtual double draw() = 0;
    /// How many tokens of the greatest logits alone lead to the choice that the whole row leads to; 0: none
    /// but the whole row does (11 §11.2).
    virtual std::int32_t n_best_needed() const = 0;
    /// On: choices look at each token of their row, also where a few of them are enough. Off at first.
    virtual void use_whole_rows(bool on) = 0;
    /// Whether the next token belongs to reasoning.
    virtual bool is_reasoning() const = 0;
    /// Whether drafting makes no sense for the next token (10 §23.6).
    virtual bool blocks_speculation(bool grammar_blocks) const = 0;

    /// Shows tokens whose special text the request wants to see.
    virtual bool is_preserved(Token token) const = 0;
};

/// Makes samplers for one loaded model.
class SamplerMaker {
  public:
    virtual ~SamplerMaker() = default;

    /// `seed_offset` is the choice index (10 §23.7); `n_ctx_slot` resolves windows of -1. Throws
    /// std::invalid_argument with a text for the client when the parameters make no sampler.
    virtual std::unique_ptr<Sampler> make(const SamplingParams& params, std::uint32_t seed_offset,
                                          std::int32_t n_ctx_slot) const = 0;
};

}  // namespace paddock
