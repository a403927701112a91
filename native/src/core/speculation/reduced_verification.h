// Reduced verification of the slots of a window: what their plans say, and what is told of it (11 §11).
#pragma once

#include <cstdint>
#include <string>

#include "core/decode_state.h"
#include "core/speculation/reduced_window.h"
#include "core/speculation/verification.h"

namespace paddock {

class ReducedVerification {
  public:
    /// `path`: of the route in force.
    ReducedVerification(const SpeculationParams& params, std::string path);

    /// What a request reports before its first draft.
    ReducedReport at_start() const;
    /// Decides for every slot with verify rows in a window of `n_rows`; `asked` is the server's mode.
    void open_window(DecodeState& state, VerifyMode asked, std::int32_t n_rows) const;
    /// The reason that a verification counts under: of the plan, unless the window was against it.
    static std::string counted_reason(const ReducedReport& report);

  private:
    void decide(Slot& slot, VerifyMode asked, ReducedWindow& window) const;

    std::string path_;
    bool is_disabled_ = false;
    bool is_for_block_drafters_ = false;
};

}  // namespace paddock
