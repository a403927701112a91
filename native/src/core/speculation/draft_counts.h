// What drafts came to, added up for a request and for the engine (11 §21.1).
#pragma once

#include "core/speculation/draft.h"
#include "core/speculation/report.h"
#include "core/speculation/verification.h"

namespace paddock {

void count_draft(SpeculationReport& report, const Draft& draft, const Verified& verified);
void count_draft(SpeculationTotals& totals, const Draft& draft, const Verified& verified);

}  // namespace paddock
