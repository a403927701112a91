// Lines of the log about drafting (11 §21.3, §21.5).
#include <doctest/doctest.h>

#include "core/speculation/draft_log.h"

using namespace paddock;

TEST_CASE("11 §21.3: a cycle tells its width, its rows and where its time went") {
    CHECK(cycle_line(2, 9, {1.25, 10.04, 0.3, 0.06}, 11.65) ==
          "cycle: width 2, rows 9, draft 1.2 ms, verify 10.0 ms, accept 0.3 ms, other 0.1 ms, total 11.7 ms");
}

TEST_CASE("11 §21.3: costs that are not known say so") {
    CHECK(model_line(2, 11.0, 8, std::nullopt, 0.442) ==
          "draft costs: T(2) 11.0 ms, T(8) unknown, gain 0.442");
}

TEST_CASE("11 §21.5: a request tells its acceptance, depth, verification and types") {
    SpeculationReport report;
    report.drafts = 5;
    report.drafted = 20;
    report.accepted = 13;
    report.depth = 3;
    report.fringe = 0.583;
    report.by_type = {{.type = DraftType::ngram_mod, .drafts = 2, .drafted = 14, .accepted = 10},
                      {.type = DraftType::draft_simple, .drafts = 3, .drafted = 6, .accepted = 3}};
    CHECK(request_line(report) ==
          "draft acceptance 0.65000 (13 of 20 accepted), depth 3, fringe 0.58; ngram-mod 2 drafts, 10 of 14 "
          "accepted; draft-simple 3 drafts, 3 of 6 accepted");
    report.verify_counts.exact = 13;
    report.verify_counts.reject = 2;
    CHECK(request_line(report).find("; exact 13, prob_accept 0, reject 2, no_prob 0, bonus 0; ngram-mod") !=
          std::string::npos);
}
