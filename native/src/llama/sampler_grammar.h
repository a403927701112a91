// The grammar of a request, from its trigger on (10 §23.2).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/sampling.h"
#include "llama/sampler_candidates.h"
#include "llama/sampler_chain.h"
#include "llama/sampler_triggers.h"
#include "llama/vocabulary.h"

namespace paddock {

class GrammarFilter {
  public:
    /// Throws std::invalid_argument when the grammar, or what triggers it, is broken.
    GrammarFilter(std::shared_ptr<const LlamaVocabulary> vocabulary, const SamplingParams& params);

    /// Whether the token may come next; every token may before the trigger.
    bool allows(Token token);
    /// Marks what may not come next; false when nothing may.
    bool restrict(Candidates& candidates);
    /// Takes a generated token; false when it isn't allowed, after which the grammar is of no use until it is
    /// reset.
    bool accept(Token token);
    void reset();
    /// Whether it rules the next token; not so before its trigger.
    bool is_active() const { return !is_waiting_; }

  private:
    void start(const TriggeredText& text);
    bool takes(Token token);
    void rewind();

    std::shared_ptr<const LlamaVocabulary> vocabulary_;
    std::string grammar_;
    /// None: the grammar rules from the first token on.
    std::optional<TriggerWatch> watch_;
    bool is_waiting_ = false;
    /// Whether it took tokens since it was made or reset: a reset reads the whole grammar again.
    bool is_used_ = false;
    SamplerHandle sampler_;
};

}  // namespace paddock
