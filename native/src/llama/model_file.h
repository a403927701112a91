// The header of a model file: what the fit step needs before any weight is read (10 §3.2 step 2).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/params.h"
#include "gguf.h"
#include "llama/fit.h"

namespace paddock {

/// Why the file can't be opened; nothing: it can. Pipes and devices, which may never end, can't.
std::optional<std::string> problem_of_path(const std::string& path);

class ModelFile {
  public:
    /// Opens the file and, of a model in several parts, the others. Throws LoadError `model-open` naming the
    /// path.
    explicit ModelFile(const std::string& path);

    /// Throws LoadError `model-load` on sizes that libllama would end the process over, be they the file's or
    /// those of `overrides`.
    void check_sizes(const std::vector<MetadataOverride>& overrides) const;

    /// Sizes of the weights that the fit step may place, and of the memory with the types of `params`.
    FitModel fit_model(const EngineParams& params) const;

  private:
    struct Close {
        void operator()(gguf_context* file) const { gguf_free(file); }
    };
    using Part = std::unique_ptr<gguf_context, Close>;

    static Part open(const std::string& path);
    /// A number of the architecture's own keys, or `otherwise` when there is none.
    std::int64_t number(const std::string& key, std::int64_t otherwise) const;
    /// The same of a list with one number for each layer; a single number counts for all of them.
    std::vector<std::int64_t> numbers(const std::string& key, std::size_t n_layers,
                                      std::int64_t otherwise) const;

    std::string path_;
    /// First part first; never empty.
    std::vector<Part> parts_;
    std::string architecture_;
};

}  // namespace paddock
