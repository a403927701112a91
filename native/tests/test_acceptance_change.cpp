// Another part of the text shows in a few drafts, and chance alone in none.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>

#include "core/speculation/acceptance_change.h"

using namespace paddock;

namespace {

constexpr std::int32_t depth = 8;

/// Drafts of one slot, and when they were found to have changed.
struct Drafts {
    AcceptanceTable table;
    AcceptanceChange change;

    bool add(std::int32_t n_accepted) {
        const std::int32_t n_examined = std::min(depth, n_accepted + 1);
        std::array<double, depth> gains{};
        table.fill_gains(gains, 3);
        const std::span<const double> expected(gains.data(), static_cast<std::size_t>(n_examined));
        table.add(n_accepted, n_examined, depth, .025, .2);
        if (const auto since = change.add(expected, n_accepted, .2, 0)) {
            table = *since;
            return true;
        }
        return false;
    }
    /// Drafts until a change is seen, of at most `most`.
    std::int32_t until_change(std::int32_t n_accepted, std::int32_t most) {
        for (std::int32_t i = 1; i <= most; ++i) {
            if (add(n_accepted)) {
                return i;
            }
        }
        return most + 1;
    }
    double gain() const {
        std::array<double, depth> gains{};
        table.fill_gains(gains, 3);
        double sum = 0.0;
        for (const double gain : gains) {
            sum += gain;
        }
        return sum;
    }
};

}  // namespace

TEST_CASE("after a hundred right drafts a few wrong ones are a change, and the other way round") {
    Drafts drafts;
    for (int i = 0; i < 100; ++i) {
        drafts.add(depth);
    }
    CHECK(drafts.gain() > 7.0);
    CHECK(drafts.until_change(0, 10) <= 4);
    CHECK(drafts.gain() < 1.0);
    for (int i = 0; i < 100; ++i) {
        drafts.add(0);
    }
    CHECK(drafts.gain() < .1);
    CHECK(drafts.until_change(depth, 10) <= 2);
    CHECK(drafts.gain() > 2.0);
}

TEST_CASE("what stays as it is hardly ever looks like a change") {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> chance;
    for (const double rate : {.05, .5, .8, .97}) {
        Drafts drafts;
        int n_changes = 0;
        for (int i = 0; i < 1000; ++i) {
            std::int32_t n_accepted = 0;
            while (n_accepted < depth && chance(random) < rate) {
                ++n_accepted;
            }
            n_changes += drafts.add(n_accepted) ? 1 : 0;
        }
        CAPTURE(rate);
        CHECK(n_changes <= 40);
    }
}

TEST_CASE("tokens that were told before are no evidence") {
    AcceptanceChange change;
    const std::array<double, 2> gains{.95, .9};
    for (int i = 0; i < 20; ++i) {
        CHECK_FALSE(change.add(gains, 1, .2, 2));
    }
}
