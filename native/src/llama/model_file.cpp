#include "llama/model_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/model_host.h"
#include "llama.h"
#include "llama/names.h"

namespace paddock {
namespace {

/// Bounds of sane models. A header that says more makes us neither allocate nor overflow.
constexpr std::int64_t max_layers = 512;
constexpr std::int64_t max_row_width = 1 << 19;
constexpr std::int64_t max_parts = 1024;
constexpr std::int64_t max_context = std::numeric_limits<std::int32_t>::max();

LoadError open_error(const std::string& path, const std::string& reason) {
    return {"model-open", "cannot open model '" + path + "': " + reason};
}

/// Integers of any width; a key of another type counts as absent.
std::int64_t integer_of(const gguf_context* file, const std::string& key, std::int64_t otherwise) {
    const std::int64_t id = gguf_find_key(file, key.c_str());
    if (id < 0) return otherwise;
    switch (gguf_get_kv_type(file, id)) {
        case GGUF_TYPE_UINT16: return gguf_get_val_u16(file, id);
        case GGUF_TYPE_UINT32: return gguf_get_val_u32(file, id);
        case GGUF_TYPE_INT32: return gguf_get_val_i32(file, id);
        case GGUF_TYPE_UINT64: return static_cast<std::int64_t>(gguf_get_val_u64(file, id));
        default: return otherwise;
    }
}

std::string text_of(const gguf_context* file, const char* key) {
    const std::int64_t id = gguf_find_key(file, key);
    const bool is_text = id >= 0 && gguf_get_kv_type(file, id) == GGUF_TYPE_STRING;
    return is_text ? gguf_get_val_str(file, id) : "";
}

std::size_t list_size(const gguf_context* file, const char* key) {
    const std::int64_t id = gguf_find_key(file, key);
    return id >= 0 && gguf_get_kv_type(file, id) == GGUF_TYPE_ARRAY ? gguf_get_arr_n(file, id) : 0;
}

/// N of `blk.N.…`; -1 of any other name.
std::int64_t layer_of(std::string_view name) {
    constexpr std::string_view prefix = "blk.";
    if (!name.starts_with(prefix)) return -1;
    std::int64_t layer = -1;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    return layer;
}

/// Bytes of a row of `heads` times `head_width` values, in whole blocks.
std::int64_t row_bytes(ggml_type type, std::int64_t heads, std::int64_t head_width) {
    const std::int64_t width = std::clamp<std::int64_t>(heads, 0, max_row_width) *
                               std::clamp<std::int64_t>(head_width, 0, max_row_width);
    const std::int64_t block = ggml_blck_size(type);
    return (std::min(width, max_row_width) + block - 1) / block *
           static_cast<std::int64_t>(ggml_type_size(type));
}

std::vector<std::string> part_paths(const std::string& path, std::int64_t n_parts) {
    std::array<char, 4096> prefix{};
    const auto count = static_cast<std::int32_t>(n_parts);
    if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, count) == 0) {
        throw open_error(path, "it is a part of a model, but not named like the first one (-00001-of-...)");
    }
    std::vector<std::string> paths{path};
    for (std::int32_t i = 1; i < count; ++i) {
        std::array<char, 4096> part{};
        llama_split_path(part.data(), part.size(), prefix.data(), i, count);
        paths.emplace_back(part.data());
    }
    return paths;
}

/// Adds up weights: what a placement names is not the fit step's to place.
class WeightSums {
  public:
    WeightSums(const EngineParams& params, FitModel& model) : model_(model) {
        for (const TensorPlacement& placement : params.tensor_placements)
            patterns_.emplace_back(placement.pattern);
    }

    void add(const char* name, std::int64_t bytes) {
        for (const std::regex& pattern : patterns_) {
            if (std::regex_search(name, pattern)) return;
        }
        const std::string_view view = name;
        const std::int64_t layer = layer_of(view);
        if (layer >= 0 && layer < static_cast<std::int64_t>(model_.layer_bytes.size())) {
            model_.layer_bytes[static_cast<std::size_t>(layer)] += bytes;
        } else if (view.starts_with("output")) {
            model_.output_bytes += bytes;
            has_output_ = has_output_ || view == "output.weight";
        } else if (view == "token_embd.weight") {
            embedding_bytes_ = bytes;
        }
    }

    /// The embeddings stay with the CPU, but they are also the output head of models without one.
    void finish() {
        if (!has_output_) model_.output_bytes += embedding_bytes_;
    }

  private:
    FitModel& model_;
    std::vector<std::regex> patterns_;
    std::int64_t embedding_bytes_ = 0;
    bool has_output_ = false;
};

}  // namespace

std::optional<std::string> problem_of_path(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (error) return error.message();
    if (!std::filesystem::is_regular_file(status)) return "it is not a regular file";
    if (!std::ifstream(path)) return std::strerror(errno);
    return std::nullopt;
}

ModelFile::ModelFile(const std::string& path) : path_(path) {
    parts_.push_back(open(path));
    const gguf_context* first = parts_.front().get();
    architecture_ = text_of(first, "general.architecture");
    const std::int64_t n_parts = integer_of(first, "split.count", 1);
    if (n_parts <= 1) return;
    if (n_parts > max_parts)
        throw open_error(path, "it claims to have " + std::to_string(n_parts) + " parts");
    const std::vector<std::string> paths = part_paths(path, n_parts);
    for (std::size_t i = 1; i < paths.size(); ++i) parts_.push_back(open(paths[i]));
}

ModelFile::Part ModelFile::open(const std::string& path) {
    if (const auto problem = problem_of_path(path)) throw open_error(path, *problem);
    std::ifstream file(path, std::ios::binary);
    std::array<char, 4> magic{};
    if (!file.read(magic.data(), magic.size()) || std::string_view(magic.data(), magic.size()) != "GGUF") {
        throw open_error(path, "it is not a GGUF file");
    }
    Part part(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (part == nullptr) throw open_error(path, "its GGUF header can't be read");
    return part;
}

void ModelFile::check_sizes(const std::vector<MetadataOverride>& overrides) const {
    constexpr std::pair<const char*, std::int64_t> sizes[] = {
        {"block_count", max_layers}, {"embedding_length", max_row_width}, {"context_length", max_context}};
    for (const auto& [name, most] : sizes) {
        const std::string key = architecture_ + "." + name;
        // libllama says by itself that one is missing.
        std::int64_t value = number(name, 1);
        for (const MetadataOverride& override : overrides) {
            if (override.key == key && override.type == "int") {
                value = std::strtoll(override.value.c_str(), nullptr, 10);
            }
        }
        if (value >= 1 && value <= most) continue;
        throw LoadError("model-load", "model '" + path_ + "' has a " + key + " of " + std::to_string(value) +
                                          "; 1 to " + std::to_string(most) +
                                          " are allowed: the file is damaged, or overridden wrongly");
    }
}

std::int64_t ModelFile::number(const std::string& key, std::int64_t otherwise) const {
    return integer_of(parts_.front().get(), architecture_ + "." + key, otherwise);
}

std::vector<std::int64_t> ModelFile::numbers(const std::string& key, std::size_t n_layers,
                                             std::int64_t otherwise) const {
    const gguf_context* file = parts_.front().get();
    const std::int64_t id = gguf_find_key(file, (architecture_ + "." + key).c_str());
    std::vector<std::int64_t> values(n_layers, number(key, otherwise));
    if (id < 0 || gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY) return values;
    const gguf_type type = gguf_get_arr_type(file, id);
    if (type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32) return values;
    const auto* data = static_cast<const std::int32_t*>(gguf_get_arr_data(file, id));
    std::copy_n(data, std::min(n_layers, gguf_get_arr_n(file, id)), values.begin());
    return values;
}

FitModel ModelFile::fit_model(const EngineParams& params) const {
    FitModel model;
    const auto n_layers =
        static_cast<std::size_t>(std::clamp<std::int64_t>(number("block_count", 0), 0, max_layers));
    const std::int64_t n_heads = std::max<std::int64_t>(number("attention.head_count", 1), 1);
    const std::int64_t head_width = number("embedding_length", 0) / n_heads;
    const std::int64_t key_width = number("attention.key_length", head_width);
    const std::int64_t value_width = number("attention.value_length", head_width);
    const ggml_type type_k = cache_type_of(params.cache_type_k);
    const ggml_type type_v = cache_type_of(params.cache_type_v);
    model.layer_bytes.assign(n_layers, 0);
    for (const std::int64_t n_kv_heads : numbers("attention.head_count_kv", n_layers, n_heads)) {
        model.cache_bytes_per_token.push_back(row_bytes(type_k, n_kv_heads, key_width) +
                                              row_bytes(type_v, n_kv_heads, value_width));
    }
    model.n_ctx_train = static_cast<std::int32_t>(number("context_length", 0));
    const std::size_t n_tokens = list_size(parts_.front().get(), "tokenizer.ggml.tokens");
    model.n_vocab = static_cast<std::int32_t>(number("vocab_size", static_cast<std::int64_t>(n_tokens)));

    WeightSums sums(params, model);
    for (const Part& part : parts_) {
        for (std::int64_t i = 0; i < gguf_get_n_tensors(part.get()); ++i) {
            sums.add(gguf_get_tensor_name(part.get(), i),
                     static_cast<std::int64_t>(gguf_get_tensor_size(part.get(), i)));
        }
    }
    sums.finish();
    return model;
}

}  // namespace paddock
