#include "llama/devices.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include "llama.h"
#include "llama/joined.h"
#include "llama/log.h"

namespace paddock {
namespace {

std::string backend_folder;

std::vector<ggml_backend_dev_t> all_devices() {
    std::vector<ggml_backend_dev_t> devices(ggml_backend_dev_count());
    for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = ggml_backend_dev_get(i);
    return devices;
}

bool is_cpu(ggml_backend_dev_t device) {
    return ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

}  // namespace

void set_backend_folder(const std::string& folder) { backend_folder = folder; }

void start_library() {
    static std::once_flag once;
    std::call_once(once, [] {
        install_library_log();
        // Builds that link their backends have devices already; looking for more would take any file that
        // fits.
        if (ggml_backend_dev_count() == 0 && !backend_folder.empty()) {
            ggml_backend_load_all_from_path(backend_folder.c_str());
        }
        llama_backend_init();
    });
}

std::vector<DeviceInfo> list_devices() {
    std::vector<DeviceInfo> infos;
    for (ggml_backend_dev_t device : all_devices()) {
        if (is_cpu(device)) continue;
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        infos.push_back({ggml_backend_dev_name(device), ggml_backend_dev_description(device),
                         static_cast<std::int64_t>(total), static_cast<std::int64_t>(free)});
    }
    return infos;
}

std::vector<ggml_backend_dev_t> devices_by_name(const std::vector<std::string>& names,
                                                std::vector<std::string>& problems) {
    std::vector<ggml_backend_dev_t> found;
    if (names == std::vector<std::string>{"none"}) return found;
    for (const std::string& name : names) {
        ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
        if (device != nullptr && !is_cpu(device)) {
            found.push_back(device);
            continue;
        }
        std::vector<std::string> allowed{"none"};
        for (const DeviceInfo& info : list_devices()) allowed.push_back(info.name);
        problems.push_back("invalid device: " + name + "; allowed: " + joined(allowed, ", "));
    }
    return found;
}

std::vector<ggml_backend_dev_t> default_devices() {
    std::vector<ggml_backend_dev_t> found;
    for (const auto wanted : {GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU}) {
        for (ggml_backend_dev_t device : all_devices()) {
            if (ggml_backend_dev_type(device) == wanted) found.push_back(device);
        }
        if (!found.empty()) break;
    }
    return found;
}

ggml_backend_buffer_type_t buffer_type_by_name(const std::string& name, std::vector<std::string>& problems) {
    std::vector<std::string> allowed;
    for (ggml_backend_dev_t device : all_devices()) {
        ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device);
        if (type == nullptr) continue;
        const std::string_view type_name = ggml_backend_buft_name(type);
        if (name == type_name || name == ggml_backend_dev_name(device)) return type;
        allowed.emplace_back(type_name);
    }
    problems.push_back("invalid buffer type: " + name + "; allowed: " + joined(allowed, ", "));
    return nullptr;
}

}  // namespace paddock
