#include "llama/model_meta.h"

#include <array>

namespace paddock {
namespace {

std::string template_of(const llama_model* model, const char* name) {
    const char* text = llama_model_chat_template(model, name);
    return text == nullptr ? std::string() : std::string(text);
}

std::string description_of(const llama_model* model) {
    std::array<char, 256> text{};
    llama_model_desc(model, text.data(), text.size());
    return text.data();
}

}  // namespace

std::string library_version() { return std::string("ggml ") + ggml_version() + " (" + ggml_commit() + ")"; }

ModelMeta read_model_meta(const llama_model* model, const LlamaVocabulary& vocabulary) {
    const llama_vocab* vocab = vocabulary.handle();
    ModelMeta meta;
    meta.chat_template = template_of(model, nullptr);
    meta.chat_template_tool_use = template_of(model, "tool_use");
    meta.rerank_template = template_of(model, "rerank");
    meta.bos = llama_vocab_bos(vocab);
    meta.eos = llama_vocab_eos(vocab);
    meta.bos_text = vocabulary.piece(meta.bos, true);
    meta.eos_text = vocabulary.piece(meta.eos, true);
    meta.sep = llama_vocab_sep(vocab);
    meta.fim_prefix = llama_vocab_fim_pre(vocab);
    meta.fim_suffix = llama_vocab_fim_suf(vocab);
    meta.fim_middle = llama_vocab_fim_mid(vocab);
    meta.fim_repository = llama_vocab_fim_rep(vocab);
    meta.fim_separator = llama_vocab_fim_sep(vocab);
    meta.adds_bos = llama_vocab_get_add_bos(vocab);
    meta.adds_eos = llama_vocab_get_add_eos(vocab);
    meta.adds_sep = llama_vocab_get_add_sep(vocab);
    meta.vocab_type = llama_vocab_type(vocab);
    meta.n_vocab = vocabulary.size();
    meta.file_type = llama_ftype_name(llama_model_ftype(model));
    meta.description = description_of(model);
    meta.library_version = library_version();
    meta.n_ctx_train = llama_model_n_ctx_train(model);
    meta.n_embd = llama_model_n_embd(model);
    meta.n_params = static_cast<std::int64_t>(llama_model_n_params(model));
    meta.size_bytes = static_cast<std::int64_t>(llama_model_size(model));
    return meta;
}

}  // namespace paddock
