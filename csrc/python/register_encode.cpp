#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/example/encode.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// (name, values, string offsets, row splits, values per row, bytes per string, rows with the
// feature), as tfrfast/example/encoded_columns.py makes. Numbers are int64 or float32, strings
// uint8. Values are None for a feature without values.
using ColumnTuple =
    std::tuple<std::string, std::optional<py::array>, std::optional<ExactNumbers<std::int64_t>>,
               std::optional<ExactNumbers<std::int64_t>>, std::size_t, std::size_t,
               std::optional<ExactNumbers<bool>>>;

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::invalid, "Feature '" + name + "': " + what);
}

// Copies the numbers. There must be at least `min_count` numbers and at least one, ascending, with
// the first at least 0 and the last at most `max_value`. Checks the copy, because another thread
// may change the user's array.
std::vector<std::int64_t> copy_ascending(const std::string& name, const char* what,
                                         const ExactNumbers<std::int64_t>& numbers,
                                         std::size_t min_count, std::size_t max_value) {
  std::vector<std::int64_t> copy = copy_of(numbers);
  const bool fits = copy.size() >= min_count && !copy.empty() && copy.front() >= 0 &&
                    static_cast<std::uint64_t>(copy.back()) <= max_value &&
                    std::is_sorted(copy.begin(), copy.end());
  if (!fits) {
    refuse(name, std::string("its ") + what + " are fewer than " + std::to_string(min_count) +
                     ", or do not ascend from 0 or more to at most " + std::to_string(max_value) +
                     ".");
  }
  return copy;
}

// The source of a column, with copies of the source's checked parts.
struct CheckedColumn {
  ColumnSource source;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> row_splits;
  std::unique_ptr<bool[]> present;
};

// `tuple` must outlive the result.
CheckedColumn check_column(const ColumnTuple& tuple, std::size_t rows) {
  const auto& [name, values, offsets, row_splits, row_values, value_bytes, present] = tuple;
  CheckedColumn checked;
  ColumnSource& source = checked.source;
  source.name = name;
  source.row_values = row_values;
  source.value_bytes = value_bytes;
  std::size_t count = 0;
  if (values) {
    count = static_cast<std::size_t>(values->size());
    if ((values->flags() & py::array::c_style) == 0 || !is_aligned(*values)) {
      refuse(name, "its values are not contiguous, or not aligned.");
    }
    if (values->dtype().equal(py::dtype::of<std::int64_t>())) {
      source.kind = ListKind::ints;
      source.ints = static_cast<const std::int64_t*>(values->data());
    } else if (values->dtype().equal(py::dtype::of<float>())) {
      source.kind = ListKind::floats;
      source.floats = static_cast<const float*>(values->data());
    } else if (values->dtype().equal(py::dtype::of<std::uint8_t>())) {
      source.kind = ListKind::bytes;
      source.data = static_cast<const std::uint8_t*>(values->data());
      if (offsets) {
        checked.offsets = copy_ascending(name, "offsets", *offsets, 1, count);
        source.offsets = checked.offsets.data();
        count = checked.offsets.size() - 1;
      } else if (value_bytes > 0) {
        count /= value_bytes;
      } else {
        count = rows * row_values;
      }
    } else {
      refuse(name, "its values are neither int64, float32 nor uint8.");
    }
  }
  if (row_splits) {
    checked.row_splits = copy_ascending(name, "row splits", *row_splits, rows + 1, count);
    source.row_splits = checked.row_splits.data();
  } else if (values && rows > 0 && count / rows < row_values) {
    refuse(name, "it has " + std::to_string(count) + " values for " + std::to_string(rows) +
                     " rows of " + std::to_string(row_values) + ".");
  }
  if (present) {
    if (static_cast<std::size_t>(present->size()) != rows) {
      refuse(name, "it says which of " + std::to_string(present->size()) +
                       " rows have it, but there are " + std::to_string(rows) + " rows.");
    }
    checked.present = std::make_unique<bool[]>(rows);
    std::copy_n(present->data(), rows, checked.present.get());
    source.present = checked.present.get();
  }
  return checked;
}

std::shared_ptr<RecordBatch> encode_columns(const std::vector<ColumnTuple>& columns,
                                            std::size_t rows, unsigned threads) {
  std::vector<CheckedColumn> checked;
  checked.reserve(columns.size());
  std::vector<ColumnSource> sources;
  for (const ColumnTuple& column : columns) {
    sources.push_back(checked.emplace_back(check_column(column, rows)).source);
  }
  const WithoutGil without_gil;
  return encode_examples(sources, rows, threads);
}

// A feature of a single Example, with the memory that its source points to.
struct SingleFeature {
  ColumnSource source;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::uint8_t> data;
  std::vector<std::int64_t> offsets;
  py::array array;
  py::object string;  // kept alive: converting other features may run Python code
  std::optional<ColumnTuple> column;
  CheckedColumn checked;
};

bool is_int(PyObject* item) {
  return PyLong_Check(item);  // true for bool, too
}

bool is_string(PyObject* item) {
  return PyBytes_Check(item) || PyUnicode_Check(item);
}

// The functions below accept common types only. If a function returns false, NumPy converts the
// whole list.
bool take_ints(SingleFeature& feature, PyObject* const* items, py::ssize_t count) {
  for (py::ssize_t i = 0; i < count; ++i) {
    if (!is_int(items[i])) return false;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(items[i], &overflow);
    if (overflow != 0) return false;
    feature.ints.push_back(value);
  }
  feature.source.kind = ListKind::ints;
  return true;
}

bool take_floats(SingleFeature& feature, PyObject* const* items, py::ssize_t count) {
  for (py::ssize_t i = 0; i < count; ++i) {
    if (!PyFloat_Check(items[i])) return false;
    feature.floats.push_back(static_cast<float>(PyFloat_AS_DOUBLE(items[i])));
  }
  feature.source.kind = ListKind::floats;
  return true;
}

bool take_strings(SingleFeature& feature, PyObject* const* items, py::ssize_t count) {
  feature.offsets.push_back(0);
  for (py::ssize_t i = 0; i < count; ++i) {
    const char* bytes = nullptr;
    py::ssize_t size = 0;
    if (PyBytes_Check(items[i])) {
      bytes = PyBytes_AS_STRING(items[i]);
      size = PyBytes_GET_SIZE(items[i]);
    } else if (PyUnicode_Check(items[i])) {
      bytes = PyUnicode_AsUTF8AndSize(items[i], &size);
      if (bytes == nullptr) throw py::error_already_set();
    } else {
      return false;
    }
    if (count == 1) {
      feature.string = py::reinterpret_borrow<py::object>(items[i]);
      feature.source.data = reinterpret_cast<const std::uint8_t*>(bytes);
    } else {
      feature.data.insert(feature.data.end(), bytes, bytes + size);
    }
    feature.offsets.push_back(feature.offsets.back() + size);
  }
  feature.source.kind = ListKind::bytes;
  return true;
}

bool take_items(SingleFeature& feature, PyObject* const* items, py::ssize_t count) {
  if (count == 0) return true;
  bool taken = false;
  if (is_int(items[0])) {
    taken = take_ints(feature, items, count);
  } else if (PyFloat_Check(items[0])) {
    taken = take_floats(feature, items, count);
  } else if (is_string(items[0])) {
    taken = take_strings(feature, items, count);
  }
  feature.source.row_values = static_cast<std::size_t>(count);
  return taken;
}

// Accepts arrays of numbers. Python converts other arrays, and those of subclasses of ndarray.
bool take_array(SingleFeature& feature, const py::array& array) {
  const bool is_plain = py::detail::npy_api::get().PyArray_Type_ == Py_TYPE(array.ptr());
  if (!is_plain || !is_aligned(array)) return false;
  const char kind = array.dtype().kind();
  if (kind == 'b' || kind == 'i' || (kind == 'u' && array.itemsize() < 8)) {
    feature.array = Numbers<std::int64_t>(array);
    feature.source.kind = ListKind::ints;
    feature.source.ints = static_cast<const std::int64_t*>(feature.array.data());
  } else if (kind == 'f' && array.itemsize() == sizeof(float)) {
    feature.array = Numbers<float>(array);
    feature.source.kind = ListKind::floats;
    feature.source.floats = static_cast<const float*>(feature.array.data());
  } else {
    return false;
  }
  feature.source.row_values = static_cast<std::size_t>(array.size());
  return true;
}

void take_value(SingleFeature& feature, py::handle value, const py::function& to_column) {
  if (py::isinstance<py::array>(value) &&
      take_array(feature, py::reinterpret_borrow<py::array>(value))) {
    return;
  }
  PyObject* object = value.ptr();
  bool taken = false;
  if (PyList_CheckExact(object)) {
    taken = take_items(feature, PySequence_Fast_ITEMS(object), PyList_GET_SIZE(object));
  } else if (PyTuple_CheckExact(object)) {
    taken = take_items(feature, PySequence_Fast_ITEMS(object), PyTuple_GET_SIZE(object));
  } else {
    taken = take_items(feature, &object, 1);
  }
  if (taken) {
    feature.source.ints = feature.ints.data();
    feature.source.floats = feature.floats.data();
    feature.source.offsets = feature.offsets.empty() ? nullptr : feature.offsets.data();
    if (feature.source.data == nullptr) feature.source.data = feature.data.data();
    return;
  }
  const py::str name(feature.source.name);
  const auto column = py::reinterpret_steal<py::object>(call_python([&] {
    return PyObject_CallFunctionObjArgs(to_column.ptr(), name.ptr(), value.ptr(), nullptr);
  }));
  if (!column) throw py::error_already_set();
  feature.column = column.cast<ColumnTuple>();
  feature.checked = check_column(*feature.column, 1);
  feature.source = feature.checked.source;
}

std::string name_of_key(py::handle key) {
  if (!PyUnicode_Check(key.ptr())) {
    throw py::type_error(std::string("A feature's name must be a str, not ") +
                         Py_TYPE(key.ptr())->tp_name + ".");
  }
  py::ssize_t size = 0;
  const char* const name = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
  if (name == nullptr) {
    PyErr_Clear();
    throw py::value_error("The name of the feature " + py::repr(key).cast<std::string>() +
                          " is not UTF-8. Give it another name.");
  }
  return {name, static_cast<std::size_t>(size)};
}

py::bytes encode_one(const py::dict& features, const py::function& to_column) {
  std::vector<SingleFeature> singles;
  singles.reserve(features.size());  // sources point to members, which must not move
  for (const auto& [key, value] : features) {
    if (value.is_none()) continue;
    singles.emplace_back().source.name = name_of_key(key);
    take_value(singles.back(), value, to_column);
  }
  std::vector<ColumnSource> sources;
  for (const SingleFeature& single : singles) sources.push_back(single.source);
  const auto batch = encode_examples(sources, 1, 1);
  return to_bytes({batch->data(), batch->data_bytes()});
}

}  // namespace

void register_encode(py::module_& module) {
  module.def("encode_columns", &encode_columns, py::arg("columns"), py::arg("rows"),
             py::arg("threads"));
  module.def("encode_one", &encode_one, py::arg("features"), py::arg("to_column"));
}

}  // namespace tfrfast::python
