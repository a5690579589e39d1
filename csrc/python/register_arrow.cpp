// Exports columns and scans as capsules of Arrow's PyCapsule interface.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/arrow/data.h"
#include "core/arrow/field.h"
#include "core/arrow/scan_stream.h"
#include "core/base/error.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// A consumer that moves the struct out of the capsule sets `release` to null.
template <class Struct>
void destroy(PyObject* capsule, const char* name) {
  auto* const held = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  if (held->release != nullptr) held->release(held);
  delete held;
}

py::capsule schema_capsule(const ArrowField& field) {
  auto held = std::make_unique<ArrowSchema>();
  export_schema(field, held.get());
  constexpr const char* kName = "arrow_schema";
  return py::capsule(held.release(), kName,
                     [](PyObject* capsule) { destroy<ArrowSchema>(capsule, kName); });
}

// A column and its type. tfrfast owns the memory, so consumers hold nothing that needs Python.
class ArrowColumn {
 public:
  ArrowColumn(ArrowField field, ArrowData data)
      : field_(std::move(field)), data_(std::move(data)) {}

  const ArrowField& field() const { return field_; }
  const ArrowData& data() const { return data_; }

  py::capsule schema() const { return schema_capsule(field_); }

  // Returns the type and the data. Ignores the requested type, as the interface allows.
  py::tuple array(const py::object&) const {
    auto held = std::make_unique<ArrowArray>();
    export_array(data_, held.get());
    constexpr const char* kName = "arrow_array";
    const py::capsule array(held.release(), kName,
                            [](PyObject* capsule) { destroy<ArrowArray>(capsule, kName); });
    return py::make_tuple(schema(), array);
  }

 private:
  ArrowField field_;
  ArrowData data_;
};

[[noreturn]] void refuse_column(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::invalid, "Column '" + name + "' cannot become an Arrow column: " + what);
}

// Returns the array's memory, shared if tfrfast owns the memory, otherwise copied.
ArrowBuffer memory_of(const py::array& array) {
  const auto bytes = static_cast<std::size_t>(array.nbytes());
  if (auto owner = owner_of(array)) return {array.data(), std::move(owner)};
  PooledBuffer copy(std::max<std::size_t>(bytes, 1));
  if (bytes != 0) std::memcpy(copy.data(), array.data(), bytes);
  return ArrowBuffer(std::move(copy));
}

const py::array& buffer_at(const std::string& name, const std::vector<py::array>& buffers,
                           std::size_t number) {
  if (number >= buffers.size()) refuse_column(name, "it lacks an array.");
  if ((buffers[number].flags() & py::array::c_style) == 0 || !is_aligned(buffers[number])) {
    refuse_column(name, "its memory is not contiguous, or not aligned.");
  }
  return buffers[number];
}

// Copies the first `rows` + 1 offsets and then checks the copy: another thread may change the
// array.
ArrowBuffer checked_offsets(const std::string& name, const py::array& array, std::size_t rows,
                            std::size_t limit) {
  if (!array.dtype().equal(py::dtype::of<std::int64_t>()) ||
      static_cast<std::size_t>(array.size()) < rows + 1) {
    refuse_column(name, "it needs an int64 offset for each row, and one more.");
  }
  const std::size_t bytes = (rows + 1) * sizeof(std::int64_t);
  PooledBuffer copy(bytes);
  std::memcpy(copy.data(), array.data(), bytes);
  const auto* offsets = copy.as<std::int64_t>();
  if (offsets[0] < 0 || static_cast<std::uint64_t>(offsets[rows]) > limit ||
      !std::is_sorted(offsets, offsets + rows + 1)) {
    refuse_column(name, "its offsets or row splits do not ascend from 0 or more to at most " +
                            std::to_string(limit) + ".");
  }
  return ArrowBuffer(std::move(copy));
}

ArrowColumn make_column(const std::string& name, const std::string& format, std::size_t rows,
                        const std::vector<py::array>& buffers,
                        const std::vector<ArrowColumn>& children,
                        std::vector<std::pair<std::string, std::string>> metadata) {
  ArrowField field;
  field.name = name;
  field.format = format;
  field.metadata = std::move(metadata);
  ArrowData data;
  data.length = static_cast<std::int64_t>(rows);
  data.buffers.emplace_back();
  for (const ArrowColumn& child : children) {
    field.children.push_back(child.field());
    data.children.push_back(child.data());
  }
  const auto items = [&] {
    if (children.size() != 1) refuse_column(name, "a list has one column of items.");
    return static_cast<std::size_t>(children[0].data().length);
  };
  if (format == "Z") {
    const py::array& bytes = buffer_at(name, buffers, 1);
    data.buffers.push_back(checked_offsets(name, buffer_at(name, buffers, 0), rows,
                                           static_cast<std::size_t>(bytes.nbytes())));
    data.buffers.push_back(memory_of(bytes));
  } else if (format == "+L") {
    data.buffers.push_back(checked_offsets(name, buffer_at(name, buffers, 0), rows, items()));
  } else if (field.is_fixed_list()) {
    std::size_t needed;
    if (__builtin_mul_overflow(field.fixed_list_size(), rows, &needed) || items() < needed) {
      refuse_column(name, "it has fewer items than its rows need.");
    }
  } else if (format == "+s") {
    for (const ArrowColumn& child : children) {
      if (child.data().length == data.length) continue;
      refuse_column(name, "column '" + child.field().name + "' has " +
                              std::to_string(child.data().length) + " rows instead of " +
                              std::to_string(rows) + ".");
    }
  } else if (format == "b") {
    const py::array& bools = buffer_at(name, buffers, 0);
    if (static_cast<std::size_t>(bools.nbytes()) < rows)
      refuse_column(name, "it has too few values.");
    data.buffers.emplace_back(bits_of_bytes(static_cast<const std::uint8_t*>(bools.data()), rows));
  } else if (const std::size_t bytes = format.size() == 1 ? arrow_number_bytes(format[0]) : 0;
             bytes != 0) {
    const py::array& numbers = buffer_at(name, buffers, 0);
    if (static_cast<std::size_t>(numbers.nbytes()) / bytes < rows) {
      refuse_column(name, "it has too few values.");
    }
    data.buffers.push_back(memory_of(numbers));
  } else {
    refuse_column(name, "'" + format + "' is not a format that tfrfast makes.");
  }
  return {std::move(field), std::move(data)};
}

ArrowField make_field(const std::string& name, const std::string& format, bool nullable,
                      const std::vector<ArrowField>& children,
                      std::vector<std::pair<std::string, std::string>> metadata,
                      const ArrowField* dictionary) {
  ArrowField field;
  field.name = name;
  field.format = format;
  field.nullable = nullable;
  field.children = children;
  field.metadata = std::move(metadata);
  if (dictionary != nullptr) field.dictionary = std::make_shared<const ArrowField>(*dictionary);
  return field;
}

// A column's field, and its content: the number of a feature, or "record" or "shard".
using Content = std::pair<ArrowField, std::variant<std::size_t, std::string>>;

std::vector<ScanColumn> scan_columns(const std::vector<Content>& contents) {
  std::vector<ScanColumn> columns;
  for (const auto& [field, content] : contents) {
    ScanColumn& column = columns.emplace_back();
    column.field = field;
    if (const auto* slot = std::get_if<std::size_t>(&content)) {
      column.content = *slot;
    } else {
      column.content = std::get<std::string>(content) == "record" ? ScanColumn::kRecordNumber
                                                                  : ScanColumn::kShard;
    }
  }
  return columns;
}

// A scan, from which streams can be made.
class PythonScan {
 public:
  PythonScan(const PythonReader& reader, const Plan& plan, std::shared_ptr<FeatureSchema> features,
             const std::vector<Content>& columns, unsigned threads, unsigned prefetch) {
    scan_.source = reader.get();
    scan_.plan = plan.options();
    scan_.features = std::move(features);
    scan_.columns = scan_columns(columns);
    scan_.loader = {
        .threads = threads, .prefetch = prefetch, .tracks_presence = true, .one_pass = true};
    scan_.check = [main_thread = MainThread()] { main_thread.check_signals(); };
  }

  const ArrowScan& core() const { return scan_; }

  py::capsule stream() const {
    auto held = std::make_unique<ArrowArrayStream>();
    export_scan(scan_, held.get());
    constexpr const char* kName = "arrow_array_stream";
    return py::capsule(held.release(), kName, [](PyObject* capsule) {
      auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kName));
      const WithoutGil without_gil;  // stops the stream's threads
      if (stream->release != nullptr) stream->release(stream);
      delete stream;
    });
  }

 private:
  ArrowScan scan_;
};

// Gives a scan's batches to a loop in Python.
class ScanBatches {
 public:
  explicit ScanBatches(const PythonScan& scan)
      : stream_(std::make_unique<ArrowScanStream>(scan.core())) {}
  ~ScanBatches() {
    const WithoutGil without_gil;  // stops the stream's threads
    stream_.reset();
  }

  ArrowColumn next() {
    ArrowData batch;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const bool is_there = [&] {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      return stream_->next(&batch);
    }();
    if (!is_there) throw py::stop_iteration();
    return {stream_->field(), std::move(batch)};
  }

 private:
  std::mutex mutex_;  // a stream serves one thread at a time
  std::unique_ptr<ArrowScanStream> stream_;
};

}  // namespace

void register_arrow(py::module_& module) {
  py::class_<ArrowField>(module, "ArrowField", "The type of an Arrow column.")
      .def(constructor(&make_field), py::arg("name"), py::arg("format"), py::kw_only(),
           py::arg("nullable") = false, py::arg("children") = std::vector<ArrowField>(),
           py::arg("metadata") = std::vector<std::pair<std::string, std::string>>(),
           py::arg("dictionary") = nullptr)
      .def("__arrow_c_schema__", &schema_capsule);

  py::class_<ArrowColumn>(module, "ArrowColumn", "A column in Arrow's layout.")
      .def(constructor(&make_column), py::arg("name"), py::arg("format"), py::arg("rows"),
           py::arg("buffers") = std::vector<py::array>(),
           py::arg("children") = std::vector<ArrowColumn>(),
           py::arg("metadata") = std::vector<std::pair<std::string, std::string>>())
      .def("__arrow_c_schema__", &ArrowColumn::schema)
      .def("__arrow_c_array__", &ArrowColumn::array, py::arg("requested_schema") = py::none());

  py::class_<PythonScan>(module, "Scan")
      .def(constructor<PythonScan, const PythonReader&, const Plan&, std::shared_ptr<FeatureSchema>,
                       const std::vector<Content>&, unsigned, unsigned>(),
           py::arg("reader"), py::arg("plan"), py::arg("features"), py::arg("columns"),
           py::arg("threads"), py::arg("prefetch"))
      .def("stream", &PythonScan::stream)
      .def("__iter__", [](const PythonScan& self) { return std::make_unique<ScanBatches>(self); });
  py::class_<ScanBatches>(module, "ScanBatches")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &ScanBatches::next);
}

}  // namespace tfrfast::python
