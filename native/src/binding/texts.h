// How the core's strings cross: as bytes, as text for reading, or as names of files.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace paddock {

/// Of model output, which may end in the middle of a character.
inline nanobind::bytes as_bytes(const std::string& text) { return nanobind::bytes(text.data(), text.size()); }

/// Of a model's metadata or a message: whatever is no UTF-8 is replaced.
inline nanobind::str as_text(const std::string& text) {
    const auto size = static_cast<Py_ssize_t>(text.size());
    return nanobind::steal<nanobind::str>(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

/// File names are bytes; Python shows those that are no UTF-8 in its own way and gives them back unharmed.
inline nanobind::str as_file_name(const std::string& path) {
    const auto size = static_cast<Py_ssize_t>(path.size());
    return nanobind::steal<nanobind::str>(PyUnicode_DecodeFSDefaultAndSize(path.data(), size));
}

inline std::string file_name_of(nanobind::handle name) {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(name.ptr(), &encoded) == 0) throw nanobind::python_error();
    const auto bytes = nanobind::steal<nanobind::bytes>(encoded);
    return {bytes.c_str(), bytes.size()};
}

template <typename Class>
void bytes_property(nanobind::class_<Class>& type, const char* name, std::string Class::* member) {
    type.def_prop_ro(name, [member](const Class& self) { return as_bytes(self.*member); });
}

template <typename Class>
void text_property(nanobind::class_<Class>& type, const char* name, std::string Class::* member) {
    type.def_prop_ro(name, [member](const Class& self) { return as_text(self.*member); });
}

template <typename Class>
void file_name_property(nanobind::class_<Class>& type, const char* name, std::string Class::* member) {
    type.def_prop_rw(
        name, [member](const Class& self) { return as_file_name(self.*member); },
        [member](Class& self, nanobind::handle value) { self.*member = file_name_of(value); },
        nanobind::for_setter(nanobind::sig("def _(self, value: str | os.PathLike[str], /) -> None")));
}

}  // namespace paddock
