// What can be asked of libllama without a model.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/binding.h"
#include "binding/texts.h"
#include "llama.h"
#include "llama/devices.h"
#include "llama/log.h"
#include "llama/model_meta.h"

namespace nb = nanobind;

namespace paddock {
namespace {

std::vector<DeviceInfo> devices_after_start() {
    start_library();
    return list_devices();
}

nb::dict library_info() {
    start_library();
    nb::dict info;
    info["version"] = as_text(library_version());
    info["system"] = as_text(llama_print_system_info());
    info["supports_gpu_offload"] = llama_supports_gpu_offload();
    info["supports_mmap"] = llama_supports_mmap();
    info["supports_mlock"] = llama_supports_mlock();
    return info;
}

}  // namespace

void bind_library(nb::module_& module) {
    nb::class_<DeviceInfo> device(module, "Device", "A device other than the CPU.");
    text_property(device, "name", &DeviceInfo::name);
    text_property(device, "description", &DeviceInfo::description);
    device.def_ro("total_bytes", &DeviceInfo::total_bytes).def_ro("free_bytes", &DeviceInfo::free_bytes);

    module.def("list_devices", &devices_after_start, nb::call_guard<nb::gil_scoped_release>());
    module.def("library_info", &library_info, nb::sig("def library_info() -> dict[str, str | bool]"),
               "Version, features of the processor in use, and what this build of llama.cpp can do.");
    module.def(
        "set_log_verbosity", &set_log_verbosity, nb::arg("verbosity"),
        "Lines up to this level reach stderr: 1 errors, 2 warnings, 3 information (default), 4 and 5 more.");
    module.def("_set_backend_folder", &set_backend_folder, nb::arg("folder"),
               "Where backends lie that are libraries of their own.");
}

}  // namespace paddock
