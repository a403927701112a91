// What an engine is started with. Ranges are checked before any weight is read (10 §3.1).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/speculation/speculation_params.h"
#include "core/types.h"

namespace paddock {

struct LoraParams {
    std::string path;
    float scale = 1.0F;
};

struct TensorPlacement {
    /// Regular expression over tensor names, and the buffer type or device by name.
    std::string pattern;
    std::string buffer;
};

struct MetadataOverride {
    std::string key;
    /// int, float, bool or str.
    std::string type;
    std::string value;
};

struct EngineParams {
    std::string model_path;
    /// First alias, or the file's name (10 §3.8).
    std::string model_name;

    std::int32_t n_ctx = 0;        // tokens; 0: as trained
    std::int32_t n_batch = 2048;   // rows
    std::int32_t n_ubatch = 512;   // rows
    std::int32_t n_parallel = -1;  // slots; -1: 4, with unified memory
    bool kv_unified = false;
    bool cont_batching = true;
    bool context_shift = false;
    bool swa_full = false;
    std::int32_t flash_attention = -1;  // -1 auto, 0 off, 1 on
    std::string cache_type_k = "f16";
    std::string cache_type_v = "f16";
    std::string pooling;       // empty: the model's; none mean cls last rank
    std::string attention;     // empty: the model's; causal non-causal
    std::string rope_scaling;  // empty: the model's; none linear yarn
    float rope_freq_base = 0.0F;
    float rope_freq_scale = 0.0F;
    float yarn_ext_factor = -1.0F;
    float yarn_attn_factor = -1.0F;
    float yarn_beta_fast = -1.0F;
    float yarn_beta_slow = -1.0F;
    std::int32_t yarn_orig_ctx = 0;
    bool embeddings = false;
    bool reranking = false;

    std::int32_t n_gpu_layers = -1;  // negative: all
    bool layers_given = false;       // the user set n_gpu_layers, so that the fit step leaves it alone
    bool context_given = false;
    std::string split_mode = "layer";  // none layer row tensor
    std::vector<float> tensor_split;
    std::int32_t main_gpu = 0;
    std::vector<std::string> devices;  // empty: all; "none": the CPU alone
    std::vector<TensorPlacement> tensor_placements;
    std::vector<MetadataOverride> metadata_overrides;
    bool offload_kqv = true;
    bool op_offload = true;
    bool repack = true;
    bool no_host = false;
    bool use_mmap = true;
    bool use_mlock = false;
    bool use_direct_io = false;
    bool check_tensors = false;
    std::string numa;  // empty: off; distribute isolate numactl
    bool fit = true;
    std::int64_t fit_target_mib = 1024;
    std::int32_t fit_ctx = 4096;

    std::int32_t n_threads = -1;        // -1: physical cores
    std::int32_t n_threads_batch = -1;  // -1: as n_threads

    std::int64_t cache_ram_mib = 8192;  // 0 off, negative: no limit
    bool cache_idle_slots = true;
    std::int32_t n_ctx_checkpoints = 32;
    std::int32_t checkpoint_min_step = 8192;  // tokens; negative: none inside a prompt
    float slot_prompt_similarity = 0.10F;

    std::vector<LoraParams> loras;
    bool lora_init_without_apply = false;

    std::int32_t n_predict = -1;
    bool special = false;  // show the text of control tokens
    bool warmup = true;
    std::int32_t sleep_idle_s = -1;  // negative: never
    bool sleep_keep_cache = true;
    bool slots_debug = false;

    SpeculationParams speculation;
};

/// Every violation of a range or combination, in words for a person; empty when all is well.
std::vector<std::string> problems_of(const EngineParams& params);

}  // namespace paddock
