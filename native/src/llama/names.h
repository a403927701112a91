// Names of parameters as libllama's numbers. `problems_of` has checked them; an unknown name is a LoadError
// `params`.
#pragma once

#include <string>

#include "llama.h"

namespace paddock {

/// f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1.
ggml_type cache_type_of(const std::string& name);
/// Empty: the model's own, in all of these.
enum llama_pooling_type pooling_of(const std::string& name);
llama_attention_type attention_of(const std::string& name);
llama_rope_scaling_type rope_scaling_of(const std::string& name);
llama_split_mode split_mode_of(const std::string& name);
/// Empty: disabled.
ggml_numa_strategy numa_of(const std::string& name);

}  // namespace paddock
