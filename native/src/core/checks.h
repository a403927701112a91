// Gathers what is wrong with parameters, in words that name the flag, what it is and what it may be.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paddock {

using Words = std::span<const std::string_view>;

inline std::string listed(Words words) {
    std::string text;
    for (const std::string_view word : words) {
        text += (text.empty() ? "" : ", ") + std::string(word);
    }
    return text;
}

/// The shortest text that stands for this number.
template <std::floating_point Number>
std::string text_of(Number value) {
    std::array<char, 32> buffer{};
    const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), written.ptr};
}

class Checks {
  public:
    void expect(bool holds, std::string problem) {
        if (!holds) {
            problems_.push_back(std::move(problem));
        }
    }

    void range(const std::string& flag, std::int64_t value, std::int64_t least, std::int64_t most) {
        expect(value >= least && value <= most, flag + " is " + std::to_string(value) +
                                                    "; it has to be from " + std::to_string(least) + " to " +
                                                    std::to_string(most));
    }

    /// Of a number that isn't whole.
    template <std::floating_point Number>
    void range(const std::string& flag, Number value, Number least, Number most) {
        expect(value >= least && value <= most, flag + " is " + text_of(value) + "; it has to be from " +
                                                    text_of(least) + " to " + text_of(most));
    }

    void at_least(const std::string& flag, std::int64_t value, std::int64_t least) {
        expect(value >= least,
               flag + " is " + std::to_string(value) + "; it has to be at least " + std::to_string(least));
    }

    void finite(const std::string& flag, float value, float least) {
        expect(std::isfinite(value) && value >= least,
               flag + " is " + text_of(value) + "; it has to be a finite number, at least " + text_of(least));
    }

    void word(const std::string& flag, std::string_view value, Words allowed) {
        expect(std::ranges::find(allowed, value) != allowed.end(),
               flag + " is '" + std::string(value) + "'; it has to be one of " + listed(allowed));
    }

    /// Empty stands for what the model says.
    void optional_word(const std::string& flag, std::string_view value, Words allowed) {
        if (!value.empty()) {
            word(flag, value, allowed);
        }
    }

    std::vector<std::string> take() { return std::move(problems_); }

  private:
    std::vector<std::string> problems_;
};

}  // namespace paddock
