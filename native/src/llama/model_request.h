// Parameters of an engine as those of a model, with the arrays that libllama wants to point into.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/params.h"
#include "llama.h"

namespace paddock {

/// Stays where it is while the model loads: `params` points into it.
class ModelRequest {
  public:
    /// Throws LoadError `params` with every name that is unknown here. `is_cancelled` is asked while weights
    /// are read.
    ModelRequest(const EngineParams& params, const std::function<bool()>& is_cancelled);
    ModelRequest(const ModelRequest&) = delete;
    ModelRequest& operator=(const ModelRequest&) = delete;

    const llama_model_params& params() const { return params_; }

  private:
    void choose_devices(const EngineParams& params, std::vector<std::string>& problems);
    void place_tensors(const EngineParams& params, std::vector<std::string>& problems);
    void override_metadata(const EngineParams& params, std::vector<std::string>& problems);

    llama_model_params params_;
    std::function<bool()> is_cancelled_;
    // Each ends with an empty entry, as libllama wants it.
    std::vector<ggml_backend_dev_t> devices_;
    std::vector<float> tensor_split_;
    std::vector<std::string> patterns_;
    std::vector<llama_model_tensor_buft_override> placements_;
    std::vector<llama_model_kv_override> overrides_;
};

}  // namespace paddock
