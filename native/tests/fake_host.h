// Loads a fake model: contexts, vocabulary and samplers that need no file.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model_host.h"
#include "fake_context.h"
#include "fake_sampler.h"
#include "fake_vocabulary.h"

namespace paddock::testing {

struct FakeHostOptions {
    FakeContextOptions context;
    bool adds_bos = false;
    /// Spellings of single tokens that differ from the usual ones.
    std::map<Token, std::string> pieces;
    std::vector<LoraView> loras;
    /// A second, smaller model that drafts.
    std::optional<FakeContextOptions> drafter;
    /// Code of the LoadError that every load throws; empty: none. Asked at each load.
    std::function<std::string()> failure = [] { return std::string(); };
};

/// Lines and calls are readable from every thread.
class FakeHost : public ModelHost {
  public:
    explicit FakeHost(FakeHostOptions options = {}) : options_(std::move(options)) {}

    Loaded load(const EngineParams&, const std::function<bool()>& is_cancelled) override {
        ++n_loads_;
        if (is_cancelled()) {
            throw LoadError("cancelled", "the load was cancelled");
        }
        if (const std::string code = options_.failure(); !code.empty()) {
            throw LoadError(code, "a failure was asked for");
        }
        Loaded loaded;
        loaded.vocabulary =
            std::make_shared<FakeVocabulary>(options_.context.n_vocab, options_.adds_bos, options_.pieces);
        loaded.samplers = std::make_unique<FakeSamplerMaker>(sampler_notes_);
        loaded.context = std::make_unique<FakeContext>(options_.context, journal_);
        if (options_.drafter.has_value()) {
            loaded.draft_vocabulary = std::make_shared<FakeVocabulary>(options_.drafter->n_vocab);
            loaded.draft_context = std::make_unique<FakeContext>(*options_.drafter);
        }
        loaded.loras = options_.loras;
        loaded.n_slots = options_.context.n_slots;
        loaded.meta.bos = token_begin;
        loaded.meta.eos = token_end;
        loaded.meta.adds_bos = options_.adds_bos;
        loaded.meta.n_vocab = options_.context.n_vocab;
        loaded.meta.n_ctx_train = options_.context.facts.n_ctx_train;
        loaded.meta.n_embd = options_.context.facts.n_embd_out;
        return loaded;
    }

    void log(int level, const std::string& text) const override {
        const std::lock_guard lock(mutex_);
        lines_.emplace_back(level, text);
    }

    /// What the contexts of all loads were asked; outlives the host.
    std::shared_ptr<Journal> journal() const { return journal_; }
    /// Of the samplers of all loads; to be read while no decode thread runs.
    FakeSamplerMaker::Log sampler_notes() const { return sampler_notes_; }
    std::int32_t n_loads() const { return n_loads_; }
    std::vector<std::pair<int, std::string>> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

  private:
    FakeHostOptions options_;
    std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
    FakeSamplerMaker::Log sampler_notes_ = std::make_shared<FakeSamplerMaker::Log::element_type>();
    std::atomic<std::int32_t> n_loads_ = 0;
    mutable std::mutex mutex_;
    mutable std::vector<std::pair<int, std::string>> lines_;
};

}  // namespace paddock::testing
