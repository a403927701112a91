// What drafts came to, added up for a request and for the engine (11 §21.1).
#pragma once

#include <span>

#include "core/speculation/cost_model.h"
#include "core/speculation/draft.h"
#include "core/speculation/report.h"
#include "core/speculation/verification.h"

namespace paddock {

void count_draft(SpeculationReport& report, const Draft& draft, const Verified& verified);
void count_draft(SpeculationTotals& totals, const Draft& draft, const Verified& verified);

/// What making these drafts of one drafter was, which took `ms`.
DraftWork work_of(DraftType type, std::span<const Draft> drafts, double ms);

}  // namespace paddock
