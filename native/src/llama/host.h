// Loads models by libllama.
#pragma once

#include <optional>

#include "core/model_host.h"
#include "llama/context.h"
#include "llama/vocabulary.h"

namespace paddock {

/// One for each engine: it remembers what the first load decided, so that waking up decides the same (10
/// §21.3).
class LlamaHost final : public ModelHost {
  public:
    Loaded load(const EngineParams& params, const std::function<bool()>& is_cancelled) override;
    void log(int level, const std::string& text) const override;

  private:
    Loaded load_here(const EngineParams& params, const std::function<bool()>& is_cancelled);

    std::optional<EngineParams> effective_;
};

}  // namespace paddock
