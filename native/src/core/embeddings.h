// Vectors as clients want them (10 §18.2).
#pragma once

#include <cstdint>
#include <vector>

namespace paddock {

/// Scales a vector in place: 0 makes its largest absolute value 32760, 1 the sum of its absolute values 1, 2
/// its Euclidean length 1, p > 2 its p-norm 1; a negative mode leaves it alone, and so do zeros.
void normalise(std::vector<float>& vector, std::int32_t mode);

}  // namespace paddock
