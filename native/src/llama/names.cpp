#include "llama/names.h"

#include <initializer_list>
#include <utility>

#include "core/model_host.h"

namespace paddock {
namespace {

template <typename Value>
Value look_up(const char* what, const std::string& name,
              std::initializer_list<std::pair<const char*, Value>> values) {
    std::string allowed;
    for (const auto& [known, value] : values) {
        if (name == known) return value;
        allowed += std::string(" ") + (*known == '\0' ? "\"\"" : known);
    }
    throw LoadError("params", std::string("unsupported ") + what + ": " + name + "; allowed:" + allowed);
}

}  // namespace

ggml_type cache_type_of(const std::string& name) {
    return look_up<ggml_type>("cache type", name,
                              {{"f32", GGML_TYPE_F32},
                               {"f16", GGML_TYPE_F16},
                               {"bf16", GGML_TYPE_BF16},
                               {"q8_0", GGML_TYPE_Q8_0},
                               {"q4_0", GGML_TYPE_Q4_0},
                               {"q4_1", GGML_TYPE_Q4_1},
                               {"iq4_nl", GGML_TYPE_IQ4_NL},
                               {"q5_0", GGML_TYPE_Q5_0},
                               {"q5_1", GGML_TYPE_Q5_1}});
}

enum llama_pooling_type pooling_of(const std::string& name) {
    return look_up<enum llama_pooling_type>("pooling", name,
                                            {{"", LLAMA_POOLING_TYPE_UNSPECIFIED},
                                             {"none", LLAMA_POOLING_TYPE_NONE},
                                             {"mean", LLAMA_POOLING_TYPE_MEAN},
                                             {"cls", LLAMA_POOLING_TYPE_CLS},
                                             {"last", LLAMA_POOLING_TYPE_LAST},
                                             {"rank", LLAMA_POOLING_TYPE_RANK}});
}

llama_attention_type attention_of(const std::string& name) {
    return look_up<llama_attention_type>("attention", name,
                                         {{"", LLAMA_ATTENTION_TYPE_UNSPECIFIED},
                                          {"causal", LLAMA_ATTENTION_TYPE_CAUSAL},
                                          {"non-causal", LLAMA_ATTENTION_TYPE_NON_CAUSAL}});
}

llama_rope_scaling_type rope_scaling_of(const std::string& name) {
    return look_up<llama_rope_scaling_type>("rope scaling", name,
                                            {{"", LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED},
                                             {"none", LLAMA_ROPE_SCALING_TYPE_NONE},
                                             {"linear", LLAMA_ROPE_SCALING_TYPE_LINEAR},
                                             {"yarn", LLAMA_ROPE_SCALING_TYPE_YARN}});
}

llama_split_mode split_mode_of(const std::string& name) {
    return look_up<llama_split_mode>("split mode", name,
                                     {{"none", LLAMA_SPLIT_MODE_NONE},
                                      {"layer", LLAMA_SPLIT_MODE_LAYER},
                                      {"row", LLAMA_SPLIT_MODE_ROW},
                                      {"tensor", LLAMA_SPLIT_MODE_TENSOR}});
}

ggml_numa_strategy numa_of(const std::string& name) {
    return look_up<ggml_numa_strategy>("NUMA strategy", name,
                                       {{"", GGML_NUMA_STRATEGY_DISABLED},
                                        {"distribute", GGML_NUMA_STRATEGY_DISTRIBUTE},
                                        {"isolate", GGML_NUMA_STRATEGY_ISOLATE},
                                        {"numactl", GGML_NUMA_STRATEGY_NUMACTL}});
}

}  // namespace paddock
