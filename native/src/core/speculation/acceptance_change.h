// Whether drafts have become better or worse than what was learnt of them: another part of the text began.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/speculation/acceptance_table.h"

namespace paddock {

/// Page's test (cumulated sums of log likelihoods) for each direction.
class AcceptanceChange {
  public:
    /// Takes the outcome of a draft, of whose tokens `gains` were expected (AcceptanceTable::fill_gains), as
    /// many as were examined; the rest as in AcceptanceTable::add. Where that outcome and those before it say
    /// that nothing is as it was: a table of what was seen since.
    std::optional<AcceptanceTable> add(std::span<const double> gains, std::int32_t n_accepted, double weight,
                                       std::int32_t n_told);

  private:
    struct Side {
        double evidence = 0.0;
        AcceptanceTable since;
    };
    std::array<Side, 2> sides_{};
};

}  // namespace paddock
