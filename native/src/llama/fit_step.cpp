#include "llama/fit_step.h"

#include <algorithm>
#include <optional>

#include "core/model_host.h"
#include "ggml-backend.h"
#include "llama/devices.h"
#include "llama/draft_host.h"
#include "llama/log.h"

namespace paddock {
namespace {

constexpr std::int64_t mib = 1LL << 20;

std::vector<ggml_backend_dev_t> used_devices(const EngineParams& params) {
    // Unknown names were refused before.
    std::vector<std::string> problems;
    std::vector<ggml_backend_dev_t> devices =
        params.devices.empty() ? default_devices() : devices_by_name(params.devices, problems);
    if (params.split_mode != "none" || devices.empty()) return devices;
    const auto last = static_cast<std::int32_t>(devices.size()) - 1;
    return {devices[static_cast<std::size_t>(std::clamp(params.main_gpu, 0, last))]};
}

std::vector<FitDevice> devices_to_fit(const EngineParams& params) {
    std::vector<FitDevice> fits;
    for (ggml_backend_dev_t device : used_devices(params)) {
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        FitDevice fit;
        fit.name = ggml_backend_dev_name(device);
        fit.free_bytes = static_cast<std::int64_t>(free) - params.fit_target_mib * mib;
        // Without a split of the user's, libllama goes by free memory.
        const std::size_t index = fits.size();
        const bool is_split = index < params.tensor_split.size();
        fit.share = is_split ? static_cast<double>(params.tensor_split[index]) : static_cast<double>(free);
        fits.push_back(fit);
    }
    return fits;
}

std::int32_t wished_layers(const EngineParams& params, const FitModel& model) {
    const std::int32_t n_all = all_layers(model);
    return params.n_gpu_layers < 0 ? n_all : std::min(params.n_gpu_layers, n_all);
}

/// The separate drafter, when there is one that can be read; its load says why it can't.
std::optional<FitCompanion> drafter_to_fit(const EngineParams& target) {
    const std::optional<EngineParams> params = drafter_params(target);
    if (!params.has_value() || params->model_path.empty()) return std::nullopt;
    try {
        FitCompanion drafter;
        drafter.model = ModelFile(params->model_path).fit_model(*params);
        drafter.devices = devices_to_fit(*params);
        drafter.n_gpu_layers = wished_layers(*params, drafter.model);
        drafter.n_ubatch = params->n_ubatch;
        drafter.cache_on_devices = params->offload_kqv;
        return drafter;
    } catch (const LoadError&) {
        return std::nullopt;
    }
}

void log_choice(const std::vector<FitDevice>& devices, const FitModel& model, const FitWish& wish,
                const FitChoice& choice, const std::optional<FitCompanion>& drafter) {
    FitWish chosen = wish;
    chosen.n_ctx = choice.n_ctx;
    chosen.n_gpu_layers = choice.n_gpu_layers;
    const std::vector<std::int64_t> needed = needed_bytes(model, devices, chosen);
    std::vector<std::int64_t> beside(devices.size(), 0);
    if (drafter.has_value()) beside = companion_bytes(*drafter, devices, chosen.n_ctx);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const std::string with_drafter =
            drafter.has_value() ? ", and the drafter " + std::to_string(beside[i] / mib) + " MiB," : "";
        log_line(LogLevel::info, "fit: " + devices[i].name + ": needs " + std::to_string(needed[i] / mib) +
                                     " MiB" + with_drafter + " of " +
                                     std::to_string(devices[i].free_bytes / mib) + " MiB");
    }
    log_line(LogLevel::info, "fit: n_ctx " + std::to_string(choice.n_ctx) + ", layers on devices " +
                                 std::to_string(choice.n_gpu_layers) + " of " +
                                 std::to_string(all_layers(model)) +
                                 (choice.fits ? "" : "; more than there is, trying nevertheless"));
}

}  // namespace

EngineParams fitted(const EngineParams& params, const ModelFile& file) {
    EngineParams result = params;
    const std::vector<FitDevice> devices = devices_to_fit(params);
    if (devices.empty()) return result;
    if (params.split_mode == "row" || params.split_mode == "tensor") {
        log_line(LogLevel::warning, "warning: fit is not done for split mode " + params.split_mode);
        return result;
    }
    const FitModel model = file.fit_model(params);
    std::optional<FitCompanion> drafter = drafter_to_fit(params);
    FitWish wish;
    wish.n_ctx = params.n_ctx > 0 ? params.n_ctx : model.n_ctx_train;
    wish.n_gpu_layers = wished_layers(params, model);
    wish.n_ubatch = params.n_ubatch;
    wish.n_ctx_least = params.fit_ctx;
    wish.may_lower_context = !params.context_given;
    wish.may_lower_layers = !params.layers_given;
    wish.cache_on_devices = params.offload_kqv;
    FitChoice choice = fit(model, devices, wish, drafter);
    if (!choice.fits && drafter.has_value()) {
        // Whether it is dropped then is for its load to say; the model is not made smaller for nothing.
        log_line(LogLevel::warning,
                 "warning: fit: the drafter has no room beside the model, and is not counted");
        drafter.reset();
        choice = fit(model, devices, wish);
    }
    log_choice(devices, model, wish, choice, drafter);
    if (choice.n_ctx != wish.n_ctx) result.n_ctx = choice.n_ctx;
    if (!params.layers_given) result.n_gpu_layers = choice.n_gpu_layers;
    return result;
}

}  // namespace paddock
