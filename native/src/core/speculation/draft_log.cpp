#include "core/speculation/draft_log.h"

#include <algorithm>
#include <cstdio>

namespace paddock {

namespace {

std::string with_digits(double number, int digits) {
    std::array<char, 64> text{};
    (void)std::snprintf(text.data(), text.size(), "%.*f", digits, number);
    return text.data();
}

std::string ms(double number) { return with_digits(number, 1) + " ms"; }

std::string cost(std::int32_t rows, std::optional<double> rows_ms) {
    return "T(" + std::to_string(rows) + ") " + (rows_ms.has_value() ? ms(*rows_ms) : "unknown");
}

std::string share(std::int64_t accepted, std::int64_t drafted) {
    return std::to_string(accepted) + " of " + std::to_string(drafted) + " accepted";
}

std::string verified(const VerifyCounts& counts) {
    return "exact " + std::to_string(counts.exact) + ", prob_accept " + std::to_string(counts.prob_accept) +
           ", reject " + std::to_string(counts.reject) + ", no_prob " + std::to_string(counts.no_prob) +
           ", bonus " + std::to_string(counts.bonus);
}

}  // namespace

std::string cycle_line(std::int32_t width, std::int32_t rows, const std::array<double, 4>& phase_ms,
                       double total_ms) {
    return "cycle: width " + std::to_string(width) + ", rows " + std::to_string(rows) + ", draft " +
           ms(phase_ms[0]) + ", verify " + ms(phase_ms[1]) + ", accept " + ms(phase_ms[2]) + ", other " +
           ms(phase_ms[3]) + ", total " + ms(total_ms);
}

std::string model_line(std::int32_t width, std::optional<double> width_ms, std::int32_t rows,
                       std::optional<double> rows_ms, double gain) {
    return "draft costs: " + cost(width, width_ms) + ", " + cost(rows, rows_ms) + ", gain " +
           with_digits(gain, 3);
}

std::string request_line(const SpeculationReport& report) {
    const double acceptance =
        static_cast<double>(report.accepted) / static_cast<double>(std::max<std::int64_t>(1, report.drafted));
    std::string line = "draft acceptance " + with_digits(acceptance, 5) + " (" +
                       share(report.accepted, report.drafted) + "), depth " + std::to_string(report.depth) +
                       ", fringe " + with_digits(report.fringe, 2);
    const VerifyCounts& counts = report.verify_counts;
    if (counts.exact + counts.prob_accept + counts.reject + counts.no_prob + counts.bonus > 0) {
        line += "; " + verified(counts);
    }
    for (const DraftTypeCounts& each : report.by_type) {
        line += "; " + std::string(name_of(each.type)) + " " + std::to_string(each.drafts) + " drafts, " +
                share(each.accepted, each.drafted);
    }
    return line;
}

}  // namespace paddock
