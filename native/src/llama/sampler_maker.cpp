#include "llama/sampler_maker.h"

#include <utility>

#include "llama/sampler.h"
#include "llama/sampler_chain.h"

namespace paddock {
namespace {

class LlamaSamplerMaker final : public SamplerMaker {
  public:
    explicit LlamaSamplerMaker(std::shared_ptr<const LlamaVocabulary> vocabulary)
        : vocabulary_(std::move(vocabulary)) {
        facts_.handle = vocabulary_->handle();
        facts_.size = vocabulary_->size();
        for (Token token = 0; token < facts_.size; ++token) {
            if (vocabulary_->is_end(token)) facts_.ends.push_back(token);
        }
    }

    std::unique_ptr<Sampler> make(const SamplingParams& params, std::uint32_t seed_offset,
                                  std::int32_t n_ctx_slot) const override {
        return std::make_unique<LlamaSampler>(vocabulary_, facts_, resolved(params, facts_, n_ctx_slot),
                                              seed_of(params.seed, seed_offset));
    }

  private:
    std::shared_ptr<const LlamaVocabulary> vocabulary_;
    VocabularyFacts facts_;
};

}  // namespace

std::unique_ptr<SamplerMaker> make_sampler_maker(std::shared_ptr<const LlamaVocabulary> vocabulary) {
    return std::make_unique<LlamaSamplerMaker>(std::move(vocabulary));
}

}  // namespace paddock
