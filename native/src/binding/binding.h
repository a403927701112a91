// The parts of the extension module, each of which binds one header of the core. Values only, no behaviour.
#pragma once

#include <nanobind/nanobind.h>

namespace paddock {

void bind_speculation(nanobind::module_& module);
void bind_params(nanobind::module_& module);
void bind_task(nanobind::module_& module);
void bind_result(nanobind::module_& module);
void bind_snapshot(nanobind::module_& module);
void bind_engine(nanobind::module_& module);
void bind_library(nanobind::module_& module);

}  // namespace paddock
