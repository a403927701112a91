// Samplers of a model, made from libllama's own filters (10 §23).
#pragma once

#include <memory>

#include "core/sampling.h"
#include "llama/vocabulary.h"

namespace paddock {

/// Samplers that keep the vocabulary, and by it the model, in memory.
std::unique_ptr<SamplerMaker> make_sampler_maker(std::shared_ptr<const LlamaVocabulary> vocabulary);

}  // namespace paddock
