#include "llama/fit.h"

#include <algorithm>

namespace paddock {
namespace {

constexpr std::int64_t mib = 1LL << 20;
constexpr std::int32_t context_step = 1024;
/// Reserve for intermediate results: the output device holds a row of logits for each token of a batch.
constexpr std::int64_t least_output_reserve = 256 * mib;
constexpr std::int64_t other_reserve = 128 * mib;
constexpr std::int64_t bytes_per_logit = 8;

bool fits_all(const FitModel& model, const std::vector<FitDevice>& devices, const FitWish& wish,
              const std::optional<FitCompanion>& companion) {
    const std::vector<std::int64_t> needed = needed_bytes(model, devices, wish);
    std::vector<std::int64_t> beside(devices.size(), 0);
    if (companion.has_value()) beside = companion_bytes(*companion, devices, wish.n_ctx);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (needed[i] + beside[i] > devices[i].free_bytes) return false;
    }
    return true;
}

}  // namespace

std::int32_t all_layers(const FitModel& model) {
    return static_cast<std::int32_t>(model.layer_bytes.size()) + 1;
}

std::vector<std::int32_t> devices_of_layers(const FitModel& model, const std::vector<FitDevice>& devices,
                                            std::int32_t n_gpu_layers) {
    const std::int32_t n_all = all_layers(model);
    std::vector<std::int32_t> placed(static_cast<std::size_t>(n_all), -1);
    const std::int32_t n_placed = std::clamp(n_gpu_layers, 0, n_all);
    double total = 0.0;
    for (const FitDevice& device : devices) total += device.share;
    if (n_placed == 0 || total <= 0.0) return placed;
    for (std::int32_t i = 0; i < n_placed; ++i) {
        const double at = static_cast<double>(i) / n_placed * total;
        std::size_t device = 0;
        double upper = devices[0].share;
        while (at >= upper && device + 1 < devices.size()) upper += devices[++device].share;
        placed[static_cast<std::size_t>(n_all) - static_cast<std::size_t>(n_placed - i)] =
            static_cast<std::int32_t>(device);
    }
    return placed;
}

std::vector<std::int64_t> needed_bytes(const FitModel& model, const std::vector<FitDevice>& devices,
                                       const FitWish& wish) {
    const std::vector<std::int32_t> placed = devices_of_layers(model, devices, wish.n_gpu_layers);
    std::vector<std::int64_t> needed(devices.size(), 0);
    const std::size_t n_layers = model.layer_bytes.size();
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
        if (placed[layer] < 0) continue;
        std::int64_t& bytes = needed[static_cast<std::size_t>(placed[layer])];
        bytes += model.layer_bytes[layer];
        if (wish.cache_on_devices) bytes += model.cache_bytes_per_token[layer] * wish.n_ctx;
    }
    const std::int32_t output = placed[n_layers];
    if (output >= 0) needed[static_cast<std::size_t>(output)] += model.output_bytes;
    for (std::size_t i = 0; i < needed.size(); ++i) {
        const auto index = static_cast<std::int32_t>(i);
        if (std::find(placed.begin(), placed.end(), index) == placed.end()) continue;
        const std::int64_t logits = bytes_per_logit * wish.n_ubatch * model.n_vocab;
        needed[i] += index == output ? std::max(least_output_reserve, logits) : other_reserve;
    }
    return needed;
}

std::vector<std::int64_t> companion_bytes(const FitCompanion& companion,
                                          const std::vector<FitDevice>& devices, std::int32_t n_ctx) {
    FitWish wish;
    wish.n_ctx = n_ctx;
    wish.n_gpu_layers = companion.n_gpu_layers;
    wish.n_ubatch = companion.n_ubatch;
    wish.cache_on_devices = companion.cache_on_devices;
    const std::vector<std::int64_t> needed = needed_bytes(companion.model, companion.devices, wish);
    std::vector<std::int64_t> shared(devices.size(), 0);
    for (std::size_t i = 0; i < needed.size(); ++i) {
        const auto same = std::ranges::find(devices, companion.devices[i].name, &FitDevice::name);
        if (same != devices.end()) shared[static_cast<std::size_t>(same - devices.begin())] += needed[i];
    }
    return shared;
}

FitChoice fit(const FitModel& model, const std::vector<FitDevice>& devices, FitWish wish,
              const std::optional<FitCompanion>& companion) {
    // (a) as wished.
    bool fits = fits_all(model, devices, wish, companion);
    // (b) a smaller context.
    while (!fits && wish.may_lower_context && wish.n_ctx > wish.n_ctx_least) {
        wish.n_ctx = std::max(wish.n_ctx - context_step, wish.n_ctx_least);
        fits = fits_all(model, devices, wish, companion);
    }
    // (c) fewer layers.
    while (!fits && wish.may_lower_layers && wish.n_gpu_layers > 0) {
        --wish.n_gpu_layers;
        fits = fits_all(model, devices, wish, companion);
    }
    return {wish.n_ctx, wish.n_gpu_layers, fits};
}

std::int32_t fewer_layers(std::int32_t n_gpu_layers) {
    return std::max(0, n_gpu_layers - std::max(1, n_gpu_layers / 10));
}

}  // namespace paddock
