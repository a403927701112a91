#include "core/adapters.h"

#include <algorithm>
#include <iterator>

namespace paddock {

namespace {

bool is_activated(const AdapterScale& adapter, const std::vector<bool>& activated) {
    return activated[static_cast<std::size_t>(adapter.adapter)];
}

bool enables_activated_only(std::span<const AdapterScale> scales, const std::vector<bool>& activated) {
    return std::ranges::all_of(scales, [&](const AdapterScale& adapter) {
        return adapter.scale == 0.0F || is_activated(adapter, activated);
    });
}

}  // namespace

std::optional<std::string> problem_of_scales(const ScaleMap& asked, std::size_t n_adapters) {
    for (const auto& [id, scale] : asked) {
        if (id < 0 || static_cast<std::size_t>(id) >= n_adapters) {
            return "There is no adapter " + std::to_string(id) + "; " + std::to_string(n_adapters) +
                   " are loaded, numbered from 0";
        }
    }
    return std::nullopt;
}

std::vector<AdapterScale> wanted_scales(std::span<const LoraView> server,
                                        const std::optional<ScaleMap>& asked) {
    std::vector<AdapterScale> scales;
    scales.reserve(server.size());
    for (const LoraView& lora : server) {
        float scale = lora.scale;
        if (asked.has_value()) {
            const auto found = asked->find(lora.id);
            scale = found == asked->end() ? 0.0F : found->second;
        }
        scales.push_back({lora.id, scale});
    }
    return scales;
}

bool keeps_cache(std::span<const AdapterScale> old_scales, std::span<const AdapterScale> new_scales,
                 const std::vector<bool>& activated) {
    return std::ranges::equal(old_scales, new_scales) ||
           (enables_activated_only(old_scales, activated) && enables_activated_only(new_scales, activated));
}

LoraKey lora_key(std::span<const AdapterScale> scales, const std::vector<bool>& activated) {
    LoraKey key;
    std::ranges::copy_if(scales, std::back_inserter(key), [&](const AdapterScale& adapter) {
        return adapter.scale != 0.0F && !is_activated(adapter, activated);
    });
    return key;
}

std::optional<std::size_t> alora_start(std::span<const Token> prompt, std::span<const Token> invocation) {
    const auto found = std::ranges::find_end(prompt, invocation);
    if (invocation.empty() || found.empty()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found.begin() - prompt.begin());
}

}  // namespace paddock
