// The bindings' table of contents: one function per register_*.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace tfrfast::python {

void register_arrow(pybind11::module_& module);
void register_arrow_import(pybind11::module_& module);
void register_crc32c(pybind11::module_& module);
void register_encode(pybind11::module_& module);
void register_errors(pybind11::module_& module);
void register_index(pybind11::module_& module);
void register_keys(pybind11::module_& module);
void register_loader(pybind11::module_& module);
void register_machine(pybind11::module_& module);
void register_pieces(pybind11::module_& module);
void register_reader(pybind11::module_& module);
void register_record_batch(pybind11::module_& module);
void register_steps(pybind11::module_& module);
void register_shuffle(pybind11::module_& module);
void register_storage(pybind11::module_& module);
void register_summary(pybind11::module_& module);
void register_writer(pybind11::module_& module);
void register_order(pybind11::module_& module);
void register_example(pybind11::module_& module);

}  // namespace tfrfast::python
