// The kinds of drafters that this build contains (11 §3.1).
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace paddock {

enum class DraftType { draft_simple, ngram_simple, ngram_map_k, ngram_map_k4v, ngram_mod, ngram_cache };

inline constexpr std::array<std::pair<DraftType, std::string_view>, 6> draft_type_names{{
    {DraftType::draft_simple, "draft-simple"},
    {DraftType::ngram_simple, "ngram-simple"},
    {DraftType::ngram_map_k, "ngram-map-k"},
    {DraftType::ngram_map_k4v, "ngram-map-k4v"},
    {DraftType::ngram_mod, "ngram-mod"},
    {DraftType::ngram_cache, "ngram-cache"},
}};

constexpr std::string_view name_of(DraftType type) {
    for (const auto& [known, name] : draft_type_names) {
        if (known == type) {
            return name;
        }
    }
    return "";
}

/// Nothing for a type that this build does not have.
constexpr std::optional<DraftType> draft_type_of(std::string_view name) {
    for (const auto& [type, known] : draft_type_names) {
        if (known == name) {
            return type;
        }
    }
    return std::nullopt;
}

/// Drafters that compute, whose lengths the request's `n_max`, `n_min` and `p_min` rule (11 §8.2).
constexpr bool is_model_drafter(DraftType type) { return type == DraftType::draft_simple; }

}  // namespace paddock
