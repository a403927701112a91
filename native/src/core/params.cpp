#include "core/params.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <regex>
#include <string_view>
#include <system_error>

#include "core/checks.h"

namespace paddock {

namespace {

constexpr auto cache_types =
    std::to_array<std::string_view>({"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"});
constexpr auto poolings = std::to_array<std::string_view>({"none", "mean", "cls", "last", "rank"});
constexpr auto attentions = std::to_array<std::string_view>({"causal", "non-causal"});
constexpr auto rope_scalings = std::to_array<std::string_view>({"none", "linear", "yarn"});
constexpr auto split_modes = std::to_array<std::string_view>({"none", "layer", "row", "tensor"});
constexpr auto numa_modes = std::to_array<std::string_view>({"distribute", "isolate", "numactl"});
constexpr auto override_types = std::to_array<std::string_view>({"int", "float", "bool", "str"});
constexpr std::int32_t slots_when_auto = 4;
/// Sequences that libllama can tell apart, and threads that ggml can run.
constexpr std::int32_t max_slots = 256;
constexpr std::int32_t max_threads = 512;
/// Bytes that libllama has for a key or a text of a metadata override, its end mark included.
constexpr std::size_t max_override_bytes = 128;

bool is_quantised(const std::string& cache_type) {
    return cache_type.starts_with('q') || cache_type.starts_with("iq");
}

void check_context(Checks& checks, const EngineParams& params) {
    checks.at_least("--ctx-size", params.n_ctx, 0);
    checks.at_least("--batch-size", params.n_batch, 1);
    checks.at_least("--ubatch-size", params.n_ubatch, 1);
    checks.expect(params.n_parallel == -1 || (params.n_parallel >= 1 && params.n_parallel <= max_slots),
                  "--parallel is " + std::to_string(params.n_parallel) + "; it has to be -1, or from 1 to " +
                      std::to_string(max_slots));
    const std::int32_t n_slots = params.n_parallel < 0 ? slots_when_auto : params.n_parallel;
    // Every slot that generates has a row in every batch (10 §13.1).
    checks.expect(params.n_batch < 1 || n_slots <= params.n_batch,
                  "--parallel asks for " + std::to_string(n_slots) + " slots, and --batch-size is " +
                      std::to_string(params.n_batch) + "; a batch needs a row for each slot");
    checks.expect(params.n_ctx <= 0 || n_slots <= params.n_ctx,
                  "--ctx-size is " + std::to_string(params.n_ctx) + ", which leaves nothing for each of " +
                      std::to_string(n_slots) + " slots");
    checks.range("--flash-attn", params.flash_attention, -1, 1);
    checks.word("--cache-type-k", params.cache_type_k, cache_types);
    checks.word("--cache-type-v", params.cache_type_v, cache_types);
    checks.expect(params.flash_attention != 0 || !is_quantised(params.cache_type_v),
                  "--cache-type-v is " + params.cache_type_v +
                      ", which needs flash attention, and --flash-attn is off; change one of them");
    checks.optional_word("--pooling", params.pooling, poolings);
    checks.expect(
        !params.reranking || params.pooling.empty() || params.pooling == "rank",
        "--reranking needs --pooling rank, and --pooling is '" + params.pooling + "'; leave it out");
    checks.optional_word("--attention", params.attention, attentions);
}

void check_positions(Checks& checks, const EngineParams& params) {
    checks.optional_word("--rope-scaling", params.rope_scaling, rope_scalings);
    checks.finite("--rope-freq-base", params.rope_freq_base, 0.0F);
    checks.finite("--rope-freq-scale", params.rope_freq_scale, 0.0F);
    // Negative: the model's own.
    checks.finite("--yarn-ext-factor", params.yarn_ext_factor, -1.0F);
    checks.finite("--yarn-attn-factor", params.yarn_attn_factor, -1.0F);
    checks.finite("--yarn-beta-fast", params.yarn_beta_fast, -1.0F);
    checks.finite("--yarn-beta-slow", params.yarn_beta_slow, -1.0F);
    checks.at_least("--yarn-orig-ctx", params.yarn_orig_ctx, 0);
}

void check_threads(Checks& checks, const std::string& flag, std::int32_t n_threads) {
    checks.expect(n_threads == -1 || (n_threads >= 1 && n_threads <= max_threads),
                  flag + " is " + std::to_string(n_threads) + "; it has to be -1, or from 1 to " +
                      std::to_string(max_threads));
}

void check_devices(Checks& checks, const EngineParams& params) {
    checks.word("--split-mode", params.split_mode, split_modes);
    float sum = 0.0F;
    for (const float part : params.tensor_split) {
        checks.finite("--tensor-split", part, 0.0F);
        sum += part;
    }
    checks.expect(params.tensor_split.empty() || sum != 0.0F, "--tensor-split gives no device anything");
    checks.at_least("--main-gpu", params.main_gpu, 0);
    const bool names_none = std::ranges::find(params.devices, "none") != params.devices.end();
    checks.expect(!names_none || params.devices.size() == 1, "--device has 'none' beside other devices");
    checks.optional_word("--numa", params.numa, numa_modes);
    checks.at_least("--fit-target", params.fit_target_mib, 0);
    checks.at_least("--fit-ctx", params.fit_ctx, 0);
    check_threads(checks, "--threads", params.n_threads);
    check_threads(checks, "--threads-batch", params.n_threads_batch);
}

void check_placement(Checks& checks, const TensorPlacement& placement) {
    checks.expect(!placement.pattern.empty() && !placement.buffer.empty(),
                  "--override-tensor needs <pattern>=<buffer type>, and one of them is empty");
    try {
        static_cast<void>(std::regex(placement.pattern));
    } catch (const std::regex_error& problem) {
        checks.expect(false, "--override-tensor has the pattern '" + placement.pattern +
                                 "', which is no regular expression: " + problem.what());
    }
}

template <typename Number>
bool is_number(const std::string& text) {
    Number value{};
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc{} && read.ptr == end;
}

bool suits_type(const MetadataOverride& metadata) {
    if (metadata.type == "int") {
        return is_number<std::int64_t>(metadata.value);
    }
    if (metadata.type == "float") {
        return is_number<double>(metadata.value);
    }
    if (metadata.type == "bool") {
        return metadata.value == "true" || metadata.value == "false";
    }
    return metadata.value.size() < max_override_bytes;
}

void check_override(Checks& checks, const MetadataOverride& metadata) {
    checks.expect(!metadata.key.empty() && metadata.key.size() < max_override_bytes,
                  "--override-kv has the key '" + metadata.key + "'; a key has 1 to " +
                      std::to_string(max_override_bytes - 1) + " bytes");
    checks.word("--override-kv " + metadata.key, metadata.type, override_types);
    checks.expect(suits_type(metadata), "--override-kv " + metadata.key + " is '" + metadata.value +
                                            "', which is no " + metadata.type);
}

void check_drafter(Checks& checks, const DraftModelParams& drafter) {
    checks.word("--spec-draft-type-k", drafter.cache_type_k, cache_types);
    checks.word("--spec-draft-type-v", drafter.cache_type_v, cache_types);
    check_threads(checks, "--spec-draft-threads", drafter.n_threads);
    check_threads(checks, "--spec-draft-threads-batch", drafter.n_threads_batch);
}

void check_service(Checks& checks, const EngineParams& params) {
    checks.at_least("--ctx-checkpoints", params.n_ctx_checkpoints, 0);
    const float similarity = params.slot_prompt_similarity;
    checks.expect(similarity >= 0.0F && similarity <= 1.0F,
                  "--slot-prompt-similarity is " + text_of(similarity) + "; it has to be from 0 to 1");
    checks.at_least("--predict", params.n_predict, -1);
    for (const LoraParams& lora : params.loras) {
        checks.expect(!lora.path.empty(), "--lora needs the path of a file");
        checks.expect(std::isfinite(lora.scale), "--lora-scaled has a scale for '" + lora.path +
                                                     "' that is " + text_of(lora.scale) +
                                                     "; it has to be a finite number");
    }
}

}  // namespace

std::vector<std::string> problems_of(const EngineParams& params) {
    Checks checks;
    checks.expect(!params.model_path.empty(), "--model needs the path of a GGUF file");
    check_context(checks, params);
    check_positions(checks, params);
    check_devices(checks, params);
    std::ranges::for_each(params.tensor_placements, [&](const auto& each) { check_placement(checks, each); });
    std::ranges::for_each(params.metadata_overrides, [&](const auto& each) { check_override(checks, each); });
    check_service(checks, params);
    check_drafter(checks, params.speculation.model);
    std::vector<std::string> problems = checks.take();
    std::ranges::move(problems_of(params.speculation), std::back_inserter(problems));
    return problems;
}

}  // namespace paddock
