#include "core/speculation/ngram_drafters.h"

#include <utility>

#include "core/speculation/ngram_cache.h"
#include "core/speculation/ngram_map.h"
#include "core/speculation/ngram_mod.h"
#include "core/speculation/ngram_simple.h"

namespace paddock {

std::unique_ptr<Drafter> make_ngram_drafter(DraftType type, const SpeculationParams& params,
                                            std::int32_t n_slots, std::int32_t n_vocab, std::string& reason,
                                            std::string& detail) {
    std::unique_ptr<Drafter> drafter;
    switch (type) {
        case DraftType::ngram_simple: drafter = std::make_unique<NgramSimple>(params.simple, n_slots); break;
        case DraftType::ngram_map_k: drafter = std::make_unique<NgramMapK>(params.map_k, n_slots); break;
        case DraftType::ngram_map_k4v:
            drafter = std::make_unique<NgramMapK4v>(params.map_k4v, n_slots);
            break;
        case DraftType::ngram_mod: drafter = std::make_unique<NgramMod>(params.mod, n_slots); break;
        case DraftType::ngram_cache: {
            auto cache =
                std::make_unique<NgramCache>(params.lookup_static, params.lookup_dynamic, n_slots, n_vocab);
            detail = cache->problem();
            drafter = std::move(cache);
            break;
        }
        case DraftType::draft_simple: reason = "type-not-built"; return nullptr;
    }
    if (!drafter->is_usable()) {
        reason = drafter->reason();
        return nullptr;
    }
    return drafter;
}

std::string ngram_warning(DraftType type, const SpeculationParams& params) {
    if (type != DraftType::ngram_mod || params.mod.match >= NgramMod::least_sound_match) {
        return {};
    }
    return "--spec-ngram-mod-n-match is " + std::to_string(params.mod.match) +
           ": matches this short find much that has nothing to do with the text; use " +
           std::to_string(NgramMod::least_sound_match) + " or more";
}

}  // namespace paddock
