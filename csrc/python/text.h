// Converts text with file names, which are bytes to the operating system. Bytes that are not UTF-8
// are kept as in Python's file names.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace tfrfast::python {

inline pybind11::str to_text(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<pybind11::ssize_t>(bytes.size()),
                                        "surrogateescape");
  if (text == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(text);
}

inline pybind11::list to_texts(const std::vector<std::string>& all) {
  pybind11::list texts;
  for (const std::string& each : all) texts.append(to_text(each));
  return texts;
}

}  // namespace tfrfast::python
