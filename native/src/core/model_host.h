// A model in memory and how it gets there. One implementation is libllama; tests bring their own.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/params.h"
#include "core/result.h"
#include "core/sampling.h"
#include "core/vocabulary.h"

namespace paddock {

/// A stage of loading that failed; `code` is one of 10 §3's table.
class LoadError : public std::runtime_error {
  public:
    LoadError(std::string code, const std::string& message)
        : std::runtime_error(message), code_(std::move(code)) {}
    const std::string& code() const { return code_; }

  private:
    std::string code_;
};

/// Facts of a model that stay readable while the engine sleeps.
struct ModelMeta {
    std::string chat_template;           // empty: none
    std::string chat_template_tool_use;  // empty: none
    std::string rerank_template;         // empty: none
    std::string bos_text;
    std::string eos_text;
    std::string file_type;  // e.g. "Q4_1 - Medium", of llama_ftype_name
    std::string description;
    std::string library_version;
    Token bos = -1;
    Token eos = -1;
    Token sep = -1;
    Token fim_prefix = -1;
    Token fim_suffix = -1;
    Token fim_middle = -1;
    Token fim_repository = -1;
    Token fim_separator = -1;
    bool adds_bos = false;
    bool adds_eos = false;
    bool adds_sep = false;
    std::int32_t vocab_type = 0;
    std::int32_t n_vocab = 0;
    std::int32_t n_ctx_train = 0;
    std::int32_t n_embd = 0;
    std::int64_t n_params = 0;
    std::int64_t size_bytes = 0;
};

struct Loaded {
    // In the order of creation, so that destruction releases contexts before models (10 §2).
    std::shared_ptr<Vocabulary> vocabulary;
    std::unique_ptr<SamplerMaker> samplers;
    std::unique_ptr<Context> context;
    /// Of the separate drafter, and the tokens as it writes them; null when none was asked for, or when
    /// `draft_problem` says why it does not run (11 §3.4).
    std::shared_ptr<Vocabulary> draft_vocabulary;
    std::unique_ptr<Context> draft_context;
    std::string draft_problem;
    /// Adapters in load order, with the scales that the command line gave.
    std::vector<LoraView> loras;
    /// Slots, after "auto" was resolved (10 §3.7).
    std::int32_t n_slots = 1;
    ModelMeta meta;
};

class ModelHost {
  public:
    virtual ~ModelHost() = default;
    /// Steps 2-14 of 10 §3.2. `is_cancelled` is asked while weights are read. Throws LoadError.
    virtual Loaded load(const EngineParams& params, const std::function<bool()>& is_cancelled) = 0;
    /// A line of the engine's own log; levels as llama-server numbers them: 1 error, 2 warning, 3 info, 4
    /// trace, 5 debug. Called by the decode thread.
    virtual void log(int level, const std::string& text) const = 0;
};

}  // namespace paddock
