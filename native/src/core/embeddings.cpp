#include "core/embeddings.h"

#include <algorithm>
#include <cmath>

namespace paddock {

namespace {

/// What the largest absolute value becomes, so that a vector fits 16-bit integers (10 §18.2).
constexpr double largest_int16 = 32760.0;

double largest_of(const std::vector<float>& vector) {
    double largest = 0.0;
    for (const float value : vector) {
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    return largest;
}

/// The p-norm in units of the largest value, so that high powers neither overflow nor vanish.
double scaled_norm(const std::vector<float>& vector, double largest, std::int32_t p) {
    double sum = 0.0;
    for (const float value : vector) {
        sum += std::pow(std::abs(static_cast<double>(value)) / largest, p);
    }
    return std::pow(sum, 1.0 / p);
}

}  // namespace

void normalise(std::vector<float>& vector, std::int32_t mode) {
    const double largest = largest_of(vector);
    if (mode < 0 || largest == 0.0) {
        return;
    }
    const double norm = mode == 0 ? largest / largest_int16 : largest * scaled_norm(vector, largest, mode);
    for (float& value : vector) {
        value = static_cast<float>(static_cast<double>(value) / norm);
    }
}

}  // namespace paddock
