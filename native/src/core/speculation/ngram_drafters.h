// Makes the drafters of 11 §6. Called when an engine loads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/speculation/draft_type.h"
#include "core/speculation/drafter.h"
#include "core/speculation/speculation_params.h"

namespace paddock {

/// For slots 0 … `n_slots - 1`; reads the files of `ngram-cache`, whose tokens are those of a vocabulary of
/// `n_vocab`. Nothing, and a reason of 11 §3.4 in `reason`, when the type can't run or isn't one of these;
/// what there is to tell beyond the reason goes into `detail`.
std::unique_ptr<Drafter> make_ngram_drafter(DraftType type, const SpeculationParams& params,
                                            std::int32_t n_slots, std::int32_t n_vocab, std::string& reason,
                                            std::string& detail);

/// What the log should say of the lengths of `type` at the start (11 §6.5); empty: nothing.
std::string ngram_warning(DraftType type, const SpeculationParams& params);

}  // namespace paddock
