// How much of a model fits into the memory of the devices (10 §3.9). Arithmetic only: asks neither files nor
// devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paddock {

struct FitDevice {
    std::string name;
    /// After the margin that stays free.
    std::int64_t free_bytes = 0;
    /// Part of the layers, relative to the other devices.
    double share = 1.0;
};

struct FitModel {
    /// Weights of each layer, and of the output head.
    std::vector<std::int64_t> layer_bytes;
    std::int64_t output_bytes = 0;
    /// Memory of one token in each layer.
    std::vector<std::int64_t> cache_bytes_per_token;
    std::int32_t n_ctx_train = 0;
    std::int32_t n_vocab = 0;
};

struct FitWish {
    std::int32_t n_ctx = 0;
    /// Layers on devices, the output head counted as one; at most all of them.
    std::int32_t n_gpu_layers = 0;
    std::int32_t n_ubatch = 0;
    std::int32_t n_ctx_least = 0;
    bool may_lower_context = false;
    bool may_lower_layers = false;
    bool cache_on_devices = true;
};

/// A second model that is loaded beside the first one with a context of the same length, as a drafter is.
/// Nothing of it is chosen.
struct FitCompanion {
    FitModel model;
    /// Its own; those that are not the first model's have room for it.
    std::vector<FitDevice> devices;
    /// As in FitWish.
    std::int32_t n_gpu_layers = 0;
    std::int32_t n_ubatch = 0;
    bool cache_on_devices = true;
};

struct FitChoice {
    std::int32_t n_ctx = 0;
    std::int32_t n_gpu_layers = 0;
    bool fits = false;
};

/// Layers of a model as `n_gpu_layers` counts them.
std::int32_t all_layers(const FitModel& model);

/// Device of each layer and, last, of the output head; -1: the CPU. The last layers come first, as in
/// libllama.
std::vector<std::int32_t> devices_of_layers(const FitModel& model, const std::vector<FitDevice>& devices,
                                            std::int32_t n_gpu_layers);

/// Bytes wanted of each device.
std::vector<std::int64_t> needed_bytes(const FitModel& model, const std::vector<FitDevice>& devices,
                                       const FitWish& wish);

/// Bytes that a companion wants of each of `devices`, which are the first model's, told apart by name.
std::vector<std::int64_t> companion_bytes(const FitCompanion& companion,
                                          const std::vector<FitDevice>& devices, std::int32_t n_ctx);

/// Steps (a) to (c): a smaller context first, then fewer layers. What a companion wants is set aside.
FitChoice fit(const FitModel& model, const std::vector<FitDevice>& devices, FitWish wish,
              const std::optional<FitCompanion>& companion = std::nullopt);

/// Step (d): one tenth fewer layers after the real load failed.
std::int32_t fewer_layers(std::int32_t n_gpu_layers);

}  // namespace paddock
