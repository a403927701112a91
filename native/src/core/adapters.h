// LoRA adapters of a request: their scales, and what memory computed under them is good for (10 §19).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/prompt_record.h"
#include "core/result.h"

namespace paddock {

/// Scales by adapter id, as clients give them.
using ScaleMap = std::map<std::int32_t, float>;

/// What is wrong with a map, for the client; none: it names adapters that exist (10 §19.2).
std::optional<std::string> problem_of_scales(const ScaleMap& asked, std::size_t n_adapters);

/// Scales that a request wants, one for each adapter: its map, with 0 for what that leaves out; without one
/// the server's own. Ids that don't exist are left out.
std::vector<AdapterScale> wanted_scales(std::span<const LoraView> server,
                                        const std::optional<ScaleMap>& asked);

/// Whether memory computed under `old_scales` may be used under `new_scales`: they are equal, or everything
/// enabled in either is an activated adapter (10 §19.3). `activated` is indexed by adapter.
bool keeps_cache(std::span<const AdapterScale> old_scales, std::span<const AdapterScale> new_scales,
                 const std::vector<bool>& activated);

/// Identity of memory computed under these scales (10 §19.4).
LoraKey lora_key(std::span<const AdapterScale> scales, const std::vector<bool>& activated);

/// Index of the last occurrence of the invocation in a prompt (10 §19.5); none for an empty invocation.
std::optional<std::size_t> alora_start(std::span<const Token> prompt, std::span<const Token> invocation);

}  // namespace paddock
