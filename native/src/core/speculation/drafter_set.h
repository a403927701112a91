// The drafters of a loaded model, in the order of asking, and why others are not among them (11 §3).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/decode_state.h"
#include "core/speculation/drafter.h"
#include "core/speculation/report.h"
#include "core/speculation/rollback.h"

namespace paddock {

class DrafterSet {
  public:
    struct Member {
        std::unique_ptr<Drafter> drafter;
        std::string name;
    };

    /// Makes those that were asked for and can run; warns of the others.
    DrafterSet(DecodeState& state, RollbackRoute route);

    bool empty() const { return members_.empty(); }
    std::vector<Member>& members() { return members_; }
    const SpeculationFacts& facts() const { return facts_; }

    /// Drafters that failed for good go.
    void drop_unusable();

  private:
    void tell_route();
    std::unique_ptr<Drafter> make(const std::string& name, RollbackRoute route, std::string& reason,
                                  std::string& detail);
    std::unique_ptr<Drafter> make_draft_model(std::string& reason);
    void drop(const std::string& name, const std::string& reason, const std::string& detail);

    DecodeState& state_;
    std::vector<Member> members_;
    SpeculationFacts facts_;
};

}  // namespace paddock
