// From the parameters of a request to the chain of libllama's filters that serves it (10 §23.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/sampling.h"
#include "llama.h"

namespace paddock {

struct SamplerFree {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using SamplerHandle = std::unique_ptr<llama_sampler, SamplerFree>;

/// What chains need of a vocabulary, read once for each model.
struct VocabularyFacts {
    const llama_vocab* handle = nullptr;
    std::int32_t size = 0;
    /// The tokens that end a text.
    std::vector<Token> ends;
};

/// Parameters as the chain uses them: windows in tokens, biases of tokens that exist, ends of text forbidden
/// as asked. Throws std::invalid_argument on values no chain can be made of.
SamplingParams resolved(SamplingParams params, const VocabularyFacts& vocabulary, std::int32_t n_ctx_slot);

/// Seed of choice `offset`. -1, and libllama's own mark for it, stand for a random one (10 §23.7).
std::uint32_t seed_of(std::int64_t seed, std::uint32_t offset);

/// Bias first, the filters in their order, selection last. Takes resolved parameters.
SamplerHandle make_chain(const SamplingParams& params, const VocabularyFacts& vocabulary, std::uint32_t seed);

/// How few candidates a chain can be given without choosing differently.
struct Reduction {
    /// The best of the vocabulary that it needs; 0: all.
    std::size_t n_best = 0;
    /// Accepted tokens whose logits it changes, counted from the last.
    std::size_t n_recent = 0;
    /// The chain chooses the greatest logit that its biases and penalties leave, whatever its filters keep.
    bool is_greedy = false;
};

/// Takes resolved parameters.
Reduction reduction_of(const SamplingParams& params);

}  // namespace paddock
