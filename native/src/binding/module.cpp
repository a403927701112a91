// The extension module paddock_native._core.
#include "binding/binding.h"

NB_MODULE(_core, module) {
    module.doc() = "Paddock's inference engine: what paddock_native exports, without the libraries it needs.";
    paddock::bind_speculation(module);
    paddock::bind_params(module);
    paddock::bind_task(module);
    paddock::bind_result(module);
    paddock::bind_snapshot(module);
    paddock::bind_engine(module);
    paddock::bind_library(module);
}
