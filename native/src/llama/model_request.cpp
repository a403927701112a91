#include "llama/model_request.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/model_host.h"
#include "llama/devices.h"
#include "llama/joined.h"
#include "llama/names.h"

namespace paddock {
namespace {

template <typename Number>
bool parse_number(const std::string& text, Number& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end;
}

/// False when the value isn't of the type.
bool fill_value(const MetadataOverride& wanted, llama_model_kv_override& entry) {
    if (wanted.type == "int") {
        entry.tag = LLAMA_KV_OVERRIDE_TYPE_INT;
        return parse_number(wanted.value, entry.val_i64);
    }
    if (wanted.type == "float") {
        entry.tag = LLAMA_KV_OVERRIDE_TYPE_FLOAT;
        return parse_number(wanted.value, entry.val_f64);
    }
    if (wanted.type == "bool") {
        entry.tag = LLAMA_KV_OVERRIDE_TYPE_BOOL;
        entry.val_bool = wanted.value == "true";
        return wanted.value == "true" || wanted.value == "false";
    }
    entry.tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    if (wanted.type != "str" || wanted.value.size() >= sizeof(entry.val_str)) return false;
    std::memcpy(entry.val_str, wanted.value.c_str(), wanted.value.size() + 1);
    return true;
}

/// Older releases have a switch for each way to read weights, newer ones a number: 0 plain, 1 mapped, 2
/// locked, 3 mapped and locked, 4 direct.
template <typename ModelParams>
void set_load_mode(const EngineParams& params, ModelParams& wanted) {
    if constexpr (requires { wanted.use_mmap; }) {
        wanted.use_mmap = params.use_mmap;
        wanted.use_mlock = params.use_mlock;
        wanted.use_direct_io = params.use_direct_io;
    } else {
        const int mapped_and_locked =
            static_cast<int>(params.use_mmap) + 2 * static_cast<int>(params.use_mlock);
        wanted.load_mode =
            static_cast<decltype(wanted.load_mode)>(params.use_direct_io ? 4 : mapped_and_locked);
    }
}

}  // namespace

ModelRequest::ModelRequest(const EngineParams& params, const std::function<bool()>& is_cancelled)
    : params_(llama_model_default_params()), is_cancelled_(is_cancelled) {
    std::vector<std::string> problems;
    choose_devices(params, problems);
    place_tensors(params, problems);
    override_metadata(params, problems);
    if (!problems.empty()) throw LoadError("params", joined(problems, "; "));

    params_.n_gpu_layers = params.n_gpu_layers;
    params_.split_mode = split_mode_of(params.split_mode);
    params_.main_gpu = params.main_gpu;
    set_load_mode(params, params_);
    params_.check_tensors = params.check_tensors;
    params_.use_extra_bufts = params.repack;
    params_.no_host = params.no_host;
    params_.progress_callback_user_data = &is_cancelled_;
    params_.progress_callback = [](float /*progress*/, void* cancelled) {
        return !(*static_cast<std::function<bool()>*>(cancelled))();
    };
}

void ModelRequest::choose_devices(const EngineParams& params, std::vector<std::string>& problems) {
    if (!params.devices.empty()) {
        devices_ = devices_by_name(params.devices, problems);
        devices_.push_back(nullptr);
        params_.devices = devices_.data();
    }
    if (params.tensor_split.empty()) return;
    const std::size_t n_max = llama_max_devices();
    if (params.tensor_split.size() > n_max) {
        problems.push_back("tensor split has " + std::to_string(params.tensor_split.size()) +
                           " parts; this llama.cpp knows at most " + std::to_string(n_max) + " devices");
        return;
    }
    tensor_split_ = params.tensor_split;
    tensor_split_.resize(n_max, 0.0F);
    params_.tensor_split = tensor_split_.data();
}

void ModelRequest::place_tensors(const EngineParams& params, std::vector<std::string>& problems) {
    if (params.tensor_placements.empty()) return;
    for (const TensorPlacement& placement : params.tensor_placements) patterns_.push_back(placement.pattern);
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
        placements_.push_back(
            {patterns_[i].c_str(), buffer_type_by_name(params.tensor_placements[i].buffer, problems)});
    }
    placements_.push_back({nullptr, nullptr});
    params_.tensor_buft_overrides = placements_.data();
}

void ModelRequest::override_metadata(const EngineParams& params, std::vector<std::string>& problems) {
    if (params.metadata_overrides.empty()) return;
    for (const MetadataOverride& wanted : params.metadata_overrides) {
        llama_model_kv_override entry{};
        if (wanted.key.empty() || wanted.key.size() >= sizeof(entry.key)) {
            problems.push_back("metadata override: the key '" + wanted.key + "' must have 1 to 127 bytes");
            continue;
        }
        std::memcpy(entry.key, wanted.key.c_str(), wanted.key.size() + 1);
        if (!fill_value(wanted, entry)) {
            problems.push_back("metadata override: " + wanted.key + ": '" + wanted.value +
                               "' is no value of type '" + wanted.type +
                               "'; types: int, float, bool (true, false), str (at most 127 bytes)");
        }
        overrides_.push_back(entry);
    }
    overrides_.push_back({});
    params_.kv_overrides = overrides_.data();
}

}  // namespace paddock
