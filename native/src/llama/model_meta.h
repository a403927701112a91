// Facts of a loaded model, for readers on every thread.
#pragma once

#include "core/model_host.h"
#include "llama/vocabulary.h"

namespace paddock {

ModelMeta read_model_meta(const llama_model* model, const LlamaVocabulary& vocabulary);

/// Version and commit of ggml, which llama.cpp is released with.
std::string library_version();

}  // namespace paddock
