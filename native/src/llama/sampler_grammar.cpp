#include "llama/sampler_grammar.h"

#include <cmath>
#include <exception>
#include <stdexcept>
#include <utility>

#include "llama/sampler_grammar_limits.h"

namespace paddock {
namespace {

constexpr const char* root_rule = "root";

SamplerHandle make_grammar(const LlamaVocabulary& vocabulary, const std::string& grammar) {
    return SamplerHandle(llama_sampler_init_grammar(vocabulary.handle(), grammar.c_str(), root_rule));
}

/// A grammar for tokens of which the first starts with bytes that don't belong to it. Only libllama can take
/// a part of a token, and it does so behind a trigger.
SamplerHandle make_grammar_behind(const LlamaVocabulary& vocabulary, const std::string& grammar,
                                  std::size_t n_bytes) {
    const std::string pattern = "^[\\s\\S]{" + std::to_string(n_bytes) + "}([\\s\\S]+)";
    const char* patterns[] = {pattern.c_str()};
    return SamplerHandle(llama_sampler_init_grammar_lazy_patterns(vocabulary.handle(), grammar.c_str(),
                                                                  root_rule, patterns, 1, nullptr, 0));
}

}  // namespace

GrammarFilter::GrammarFilter(std::shared_ptr<const LlamaVocabulary> vocabulary, const SamplingParams& params)
    : vocabulary_(std::move(vocabulary)), grammar_(params.grammar) {
    check_grammar_limits(grammar_);
    if (params.grammar_lazy) watch_.emplace(params.grammar_triggers);
    is_waiting_ = watch_.has_value();
    try {
        sampler_ = make_grammar(*vocabulary_, grammar_);
    } catch (const std::exception& error) {
        throw std::invalid_argument(std::string("grammar: ") + error.what());
    }
    if (sampler_ == nullptr) {
        throw std::invalid_argument(
            "grammar: it can't be parsed, refers to a rule that it doesn't define, has a rule "
            "that starts with itself, or has no rule named root");
    }
}

bool GrammarFilter::allows(Token token) {
    if (is_waiting_) return true;
    llama_token_data single{.id = token, .logit = 1.0F, .p = 0.0F};
    llama_token_data_array array{.data = &single, .size = 1, .selected = -1, .sorted = false};
    llama_sampler_apply(sampler_.get(), &array);
    return !std::isinf(single.logit);
}

bool GrammarFilter::restrict(Candidates& candidates) { return candidates.restrict_by(sampler_.get()); }

bool GrammarFilter::accept(Token token) {
    if (!is_waiting_) return takes(token);
    if (const auto text = watch_->accept(token, vocabulary_->piece(token, true))) start(*text);
    return true;
}

void GrammarFilter::start(const TriggeredText& text) {
    if (text.n_bytes_skipped > 0)
        sampler_ = make_grammar_behind(*vocabulary_, grammar_, text.n_bytes_skipped);
    is_waiting_ = false;
    for (const Token token : text.tokens) {
        if (!vocabulary_->is_end(token) && takes(token)) continue;
        // What was written before the grammar applied doesn't fit it: it waits for the next trigger.
        rewind();
        watch_->forget();
        return;
    }
}

bool GrammarFilter::takes(Token token) {
    is_used_ = true;
    // libllama ends the process when it is given an end of text that the grammar doesn't allow.
    if (!allows(token)) return false;
    try {
        llama_sampler_accept(sampler_.get(), token);
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

void GrammarFilter::reset() {
    if (watch_.has_value()) watch_->reset();
    rewind();
}

void GrammarFilter::rewind() {
    is_waiting_ = watch_.has_value();
    if (!is_used_) return;
    sampler_ = make_grammar(*vocabulary_, grammar_);
    is_used_ = false;
}

}  // namespace paddock
