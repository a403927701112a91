// Lines of the log about drafting (11 §15.7, §21.3, §21.5). Pure: numbers and names of the engine become
// text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/speculation/report.h"

namespace paddock {

/// `width`: slots that generate; `rows`: those of the target model; milliseconds in the order draft, verify,
/// accept, other.
std::string cycle_line(std::int32_t width, std::int32_t rows, const std::array<double, 4>& phase_ms,
                       double total_ms);

/// What the cost model says of a cycle without drafts, and of one with as many rows as the last; nothing: it
/// does not know. `gain`: share over no drafts.
std::string model_line(std::int32_t width, std::optional<double> width_ms, std::int32_t rows,
                       std::optional<double> rows_ms, double gain);

/// What drafting came to for a request that had drafts.
std::string request_line(const SpeculationReport& report);

}  // namespace paddock
