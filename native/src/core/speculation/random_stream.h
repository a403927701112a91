// Random numbers of a drafter; the same start gives the same ones everywhere.
#pragma once

#include <cstdint>

namespace paddock {

/// SplitMix64, which any start will do for.
class RandomStream {
  public:
    explicit RandomStream(std::uint64_t seed) : state_(seed) {}

    /// The next number in [0, 1).
    double next_unit() {
        constexpr double step = 0x1p-53;
        return static_cast<double>(next() >> 11U) * step;
    }

  private:
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }

    std::uint64_t state_;
};

}  // namespace paddock
