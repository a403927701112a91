// How much of a model fits, and what a drafter beside it takes (10 §3.9).
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llama/fit.h"

using namespace paddock;

namespace {

constexpr std::int64_t mib = 1LL << 20;
/// Intermediate results on the device of the output head, and on others.
constexpr std::int64_t output_reserve = 256 * mib;
constexpr std::int64_t other_reserve = 128 * mib;

/// Layers of 100 MiB, a head of 50 MiB, and 1 MiB of memory for 64 tokens in each layer.
FitModel model_of(std::size_t n_layers) {
    FitModel model;
    model.layer_bytes.assign(n_layers, 100 * mib);
    model.output_bytes = 50 * mib;
    model.cache_bytes_per_token.assign(n_layers, mib / 64);
    model.n_ctx_train = 65536;
    model.n_vocab = 1000;
    return model;
}

FitDevice device(const std::string& name, std::int64_t free_mib, double share = 1.0) {
    return {.name = name, .free_bytes = free_mib * mib, .share = share};
}

FitWish wish_of(std::int32_t n_ctx, std::int32_t n_gpu_layers) {
    FitWish wish;
    wish.n_ctx = n_ctx;
    wish.n_gpu_layers = n_gpu_layers;
    wish.n_ubatch = 512;
    wish.n_ctx_least = 1024;
    wish.may_lower_context = true;
    wish.may_lower_layers = true;
    return wish;
}

/// Two layers, which take 250 MiB, 32 MiB for each 1024 tokens, and 256 MiB of intermediate results.
FitCompanion drafter_on(const std::vector<FitDevice>& devices) {
    FitCompanion drafter;
    drafter.model = model_of(2);
    drafter.devices = devices;
    drafter.n_gpu_layers = all_layers(drafter.model);
    drafter.n_ubatch = 512;
    return drafter;
}

}  // namespace

TEST_CASE("10 3.9: need is weights, memory and a reserve") {
    const std::vector<FitDevice> one{device("GPU0", 0)};
    CHECK(needed_bytes(model_of(4), one, wish_of(1024, 5)).front() ==
          450 * mib + 4 * 16 * mib + output_reserve);
    FitWish on_host = wish_of(1024, 5);
    on_host.cache_on_devices = false;
    CHECK(needed_bytes(model_of(4), one, on_host).front() == 450 * mib + output_reserve);
    CHECK(needed_bytes(model_of(4), one, wish_of(1024, 0)).front() == 0);
}

TEST_CASE("10 3.9: a large vocabulary has a larger reserve") {
    FitModel model = model_of(1);
    model.n_vocab = 256000;
    const std::int64_t logits = std::int64_t{8} * 512 * 256000;
    CHECK(needed_bytes(model, {device("GPU0", 0)}, wish_of(0, 2)).front() == 150 * mib + logits);
}

TEST_CASE("layers go to devices by their shares, the last layers first") {
    const std::vector<FitDevice> two{device("GPU0", 0, 1.0), device("GPU1", 0, 3.0)};
    CHECK(devices_of_layers(model_of(7), two, 8) == std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 1, 1});
    CHECK(devices_of_layers(model_of(7), two, 4) == std::vector<std::int32_t>{-1, -1, -1, -1, 0, 1, 1, 1});
    const std::vector<std::int64_t> needed = needed_bytes(model_of(7), two, wish_of(0, 8));
    CHECK(needed == std::vector<std::int64_t>{200 * mib + other_reserve, 550 * mib + output_reserve});
}

TEST_CASE("10 3.9: what fits stays as it is") {
    const FitChoice choice = fit(model_of(4), {device("GPU0", 4096)}, wish_of(8192, 5));
    CHECK(choice.fits);
    CHECK(choice.n_ctx == 8192);
    CHECK(choice.n_gpu_layers == 5);
}

TEST_CASE("10 3.9: the context gives way first, then layers") {
    // 450 and 256 MiB besides the context, of which 1024 tokens take 64 MiB.
    const FitChoice shorter = fit(model_of(4), {device("GPU0", 900)}, wish_of(8192, 5));
    CHECK(shorter.n_ctx == 3 * 1024);
    CHECK(shorter.n_gpu_layers == 5);
    const FitChoice fewer = fit(model_of(4), {device("GPU0", 600)}, wish_of(8192, 5));
    CHECK(fewer.n_ctx == 1024);
    CHECK(fewer.n_gpu_layers == 3);
    CHECK(fewer.fits);
}

TEST_CASE("10 3.9: what the user set is never changed") {
    FitWish fixed = wish_of(8192, 5);
    fixed.may_lower_context = false;
    fixed.may_lower_layers = false;
    const FitChoice choice = fit(model_of(4), {device("GPU0", 600)}, fixed);
    CHECK(choice.n_ctx == 8192);
    CHECK(choice.n_gpu_layers == 5);
    CHECK_FALSE(choice.fits);
}

TEST_CASE("after a load that failed a tenth of the layers goes, at least one") {
    CHECK(fewer_layers(40) == 36);
    CHECK(fewer_layers(5) == 4);
    CHECK(fewer_layers(0) == 0);
}

TEST_CASE("a drafter takes memory of the devices that it shares with the model") {
    const std::vector<FitDevice> devices{device("GPU0", 0), device("GPU1", 0)};
    const std::int64_t own = 250 * mib + 2 * 16 * mib + output_reserve;
    CHECK(companion_bytes(drafter_on({device("GPU1", 0)}), devices, 1024) ==
          std::vector<std::int64_t>{0, own});
    CHECK(companion_bytes(drafter_on({device("GPU7", 0)}), devices, 1024) == std::vector<std::int64_t>{0, 0});
    CHECK(companion_bytes(drafter_on({}), devices, 1024) == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("a drafter's memory grows with the context that is chosen") {
    const std::vector<FitDevice> devices{device("GPU0", 0)};
    const FitCompanion drafter = drafter_on(devices);
    CHECK(companion_bytes(drafter, devices, 8192).front() - companion_bytes(drafter, devices, 4096).front() ==
          4 * 32 * mib);
}

TEST_CASE("with a drafter beside it less of a model fits") {
    const std::vector<FitDevice> devices{device("GPU0", 1400)};
    const FitChoice alone = fit(model_of(4), devices, wish_of(8192, 5));
    CHECK(alone.n_ctx == 8192);
    CHECK(alone.n_gpu_layers == 5);
    // Both take 450 + 256 + 250 + 256 MiB, and 96 MiB for each 1024 tokens.
    const FitChoice beside = fit(model_of(4), devices, wish_of(8192, 5), drafter_on(devices));
    CHECK(beside.n_ctx == 1024);
    CHECK(beside.n_gpu_layers == 5);
    CHECK(beside.fits);
    const FitChoice elsewhere =
        fit(model_of(4), devices, wish_of(8192, 5), drafter_on({device("GPU1", 1400)}));
    CHECK(elsewhere.n_ctx == 8192);
}

TEST_CASE("a drafter on host memory takes nothing of a device") {
    const std::vector<FitDevice> devices{device("GPU0", 1400)};
    FitCompanion drafter = drafter_on(devices);
    drafter.n_gpu_layers = 0;
    CHECK(companion_bytes(drafter, devices, 8192).front() == 0);
}
