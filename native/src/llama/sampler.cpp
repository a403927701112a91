#include "llama/sampler.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace paddock {
namespace {

std::optional<ReasoningAutomaton> make_reasoning(const ReasoningParams& params,
                                                 const LlamaVocabulary& vocabulary) {
    if (params.end_tags.empty()) return std::nullopt;
    const auto tokens_of = [&](const std::string& text) { return vocabulary.tokenize(text, false, true); };
    ReasoningTags tags{
        .start = tokens_of(params.start_tag),
        .ends = {},
        .forced = tokens_of(params.message + params.end_tags.front()),
    };
    for (const std::string& end : params.end_tags) tags.ends.push_back(tokens_of(end));
    return ReasoningAutomaton(std::move(tags), params.budget_tokens, params.starts_open);
}

std::vector<Token> sorted(std::vector<Token> tokens) {
    std::ranges::sort(tokens);
    return tokens;
}

/// Makes the start of the second random stream of that of the first (10 §23.7).
constexpr std::uint64_t second_stream = 0x9E3779B97F4A7C15ULL;

bool draws(const SamplingParams& params) {
    const bool selects_itself =
        params.mirostat != 0 || std::ranges::find(params.samplers, "adaptive_p") != params.samplers.end();
    return params.temperature > 0.0F && !selects_itself;
}

}  // namespace

LlamaSampler::LlamaSampler(std::shared_ptr<const LlamaVocabulary> vocabulary, const VocabularyFacts& facts,
                           const SamplingParams& params, std::uint32_t seed)
    : vocabulary_(std::move(vocabulary)),
      chain_(make_chain(params, facts, seed)),
      reasoning_(make_reasoning(params.reasoning, *vocabulary_)),
      preserved_(sorted(params.preserved_tokens)),
      draws_(draws(params)),
      verdicts_(seed ^ second_stream),
      reduction_(reduction_of(params)),
      n_biased_(params.logit_bias.size()) {
    if (!params.grammar.empty()) grammar_.emplace(vocabulary_, params);
    if (reduction_.n_best == 0) return;
    touched_.reserve(n_biased_ + reduction_.n_recent);
    for (const auto& [token, bias] : params.logit_bias) touched_.push_back(token);
}

Token LlamaSampler::sample(std::span<const float> logits) {
    if (left_grammar_) throw std::runtime_error("the text left its grammar");
    if (reasoning_.has_value()) {
        if (const std::optional<Token> forced = reasoning_->forced_token()) {
            candidates_.set_only(*forced);
            has_whole_rest_ = true;
            return *forced;
        }
    }
    const Token token = first_choice(logits);
    if (!grammar_applies() || grammar_->allows(token)) return token;

    // Testing one token is cheap, testing a vocabulary isn't; models mostly keep to a grammar by themselves.
    fill(logits);
    if (!grammar_->restrict(candidates_)) throw std::invalid_argument("the grammar allows no further token");
    return choose();
}

void LlamaSampler::accept(Token token, bool generated) {
    if (token < 0 || token >= vocabulary_->size()) return;
    // A token of the reasoning is none of the grammar's, also when it ends the reasoning.
    const bool is_grammars = generated && grammar_applies();
    if (generated) {
        last_is_end_ = vocabulary_->is_end(token);
        if (reasoning_.has_value()) reasoning_->accept(token, vocabulary_->piece(token, true));
    }
    llama_sampler_accept(chain_.get(), token);
    remember(token);
    if (is_grammars && !grammar_->accept(token)) left_grammar_ = true;
}

void LlamaSampler::reset() {
    llama_sampler_reset(chain_.get());
    if (grammar_.has_value()) grammar_->reset();
    if (reasoning_.has_value()) reasoning_->reset();
    if (touched_.size() > n_biased_) touched_.resize(n_biased_);
    next_recent_ = 0;
    last_is_end_ = false;
    left_grammar_ = false;
}

TokenRecord LlamaSampler::record(std::span<const float> logits, Token chosen, std::int32_t n_top,
                                 bool post_sampling) {
    TokenRecord record;
    if (!post_sampling) {
        record = record_of(logits, chosen, n_top);
    } else {
        if (!has_whole_rest_) {
            // Only a choice of the greatest logit leaves less, so choosing again gives the same token.
            fill(logits);
            choose();
        }
        record = record_of(candidates_.left(), chosen, n_top);
    }
    const auto name = [&](TokenProbability& entry) {
        entry.piece = vocabulary_->piece(entry.token, is_preserved(entry.token));
    };
    name(record.chosen);
    std::ranges::for_each(record.top, name);
    return record;
}

bool LlamaSampler::in_reasoning() const {
    return reasoning_.has_value() && reasoning_->in_reasoning() && !last_is_end_;
}

bool LlamaSampler::last_was_forced() const { return reasoning_.has_value() && reasoning_->last_was_forced(); }

bool LlamaSampler::force_end() { return reasoning_.has_value() && reasoning_->force_end(); }

std::int32_t LlamaSampler::forced_count() const {
    return reasoning_.has_value() ? static_cast<std::int32_t>(reasoning_->forced_count()) : 0;
}

bool LlamaSampler::has_distribution() const {
    const bool is_ruled = grammar_applies() && grammar_->is_active();
    const bool is_forced = reasoning_.has_value() && reasoning_->forced_token().has_value();
    return draws_ && !is_ruled && !is_forced;
}

std::vector<TokenChance> LlamaSampler::distribution(std::span<const float> logits) {
    fill_for_choice(logits);
    choose();
    return chances_of(candidates_.left());
}

double LlamaSampler::draw() { return std::uniform_real_distribution<double>()(verdicts_); }

std::int32_t LlamaSampler::n_best_needed() const {
    return static_cast<std::int32_t>(reduction_.n_best + touched_.size());
}

void LlamaSampler::use_whole_rows(bool on) { takes_whole_rows_ = on; }

bool LlamaSampler::is_reasoning() const { return reasoning_.has_value() && reasoning_->is_active(); }

bool LlamaSampler::blocks_speculation(bool grammar_blocks) const {
    const bool is_ending = reasoning_.has_value() && (reasoning_->state() == ReasoningState::forcing ||
                                                      reasoning_->state() == ReasoningState::waiting_utf8);
    return is_ending || (grammar_blocks && grammar_applies() && grammar_->is_active());
}

bool LlamaSampler::is_preserved(Token token) const { return std::ranges::binary_search(preserved_, token); }

/// Without a look at the grammar.
Token LlamaSampler::first_choice(std::span<const float> logits) {
    if (reduces() && reduction_.is_greedy && touched_.empty()) {
        if (const std::optional<Token> greatest = best_.greatest(logits)) {
            has_whole_rest_ = false;
            return *greatest;
        }
    }
    fill_for_choice(logits);
    return choose();
}

Token LlamaSampler::choose() {
    const std::optional<Token> token = candidates_.choose(chain_.get());
    if (!token.has_value()) throw std::invalid_argument("the sampling parameters rule out every token");
    return *token;
}

void LlamaSampler::fill(std::span<const float> logits) {
    has_whole_rest_ = true;
    if (!candidates_.fill(logits)) throw std::runtime_error("the model gave no logit that is a number");
}

void LlamaSampler::fill_for_choice(std::span<const float> logits) {
    if (reduces() && candidates_.fill_best(best_, logits, reduction_.n_best, touched_)) {
        has_whole_rest_ = !reduction_.is_greedy;
    } else {
        fill(logits);
    }
}

void LlamaSampler::remember(Token token) {
    if (reduction_.n_best == 0 || reduction_.n_recent == 0) return;
    if (touched_.size() < n_biased_ + reduction_.n_recent) {
        touched_.push_back(token);
    } else {
        touched_[n_biased_ + next_recent_] = token;
    }
    next_recent_ = (next_recent_ + 1) % reduction_.n_recent;
}

bool LlamaSampler::grammar_applies() const {
    return grammar_.has_value() && !(reasoning_.has_value() && reasoning_->is_active());
}

}  // namespace paddock
