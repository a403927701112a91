#include "core/speculation/acceptance_table.h"

#include <algorithm>

namespace paddock {
namespace {

/// Rate of the first position before anything is known, and by how much a position falls behind the one
/// before.
constexpr double first_rate = 0.6;
constexpr double fall = 0.9;

}  // namespace

void AcceptanceTable::add(std::int32_t n_accepted, std::int32_t n_examined, std::int32_t n_usual,
                          double weight, double rare_weight, std::int32_t n_told) {
    const auto end = static_cast<std::size_t>(std::clamp(n_examined, 0, n_positions));
    for (auto i = static_cast<std::size_t>(std::max(0, n_told)); i < end; ++i) {
        Cell& cell = cells_[i];
        ++cell.count;
        const double outcome = static_cast<std::int64_t>(i) < n_accepted ? 1.0 : 0.0;
        const double least = static_cast<std::int64_t>(i) < n_usual ? weight : rare_weight;
        cell.rate += std::max(least, 1.0 / static_cast<double>(cell.count)) * (outcome - cell.rate);
    }
}

void AcceptanceTable::fill_gains(std::span<double> gains, std::int32_t n_assumed,
                                 const AcceptanceTable& others) const {
    const auto assumed = static_cast<double>(n_assumed);
    const auto mean = [assumed](const Cell& cell, double assumption) {
        const auto seen = static_cast<double>(cell.count);
        return (seen * cell.rate + assumed * assumption) / (seen + assumed);
    };
    double rate = first_rate / fall;
    double product = 1.0;
    const std::size_t end = std::min(gains.size(), cells_.size());
    for (std::size_t i = 0; i < end; ++i) {
        rate = mean(cells_[i], mean(others.cells_[i], fall * rate));
        product *= rate;
        gains[i] = product;
    }
}

}  // namespace paddock
