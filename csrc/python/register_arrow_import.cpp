// Imports other programs' Arrow data as arrays over the programs' memory.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/arrow/c_data.h"
#include "core/base/error.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// A struct that is released with its last user.
template <class Struct>
class Received {
 public:
  Received() = default;
  explicit Received(Struct* from) : held_(*from) { from->release = nullptr; }
  ~Received() {
    if (held_.release != nullptr) held_.release(&held_);
  }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  Struct* get() noexcept { return &held_; }

 private:
  Struct held_ = {};
};

template <class Struct>
std::shared_ptr<Received<Struct>> take_from(const py::handle& capsule, const char* name) {
  auto* const held = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held == nullptr) throw py::error_already_set();
  if (held->release == nullptr) {
    throw Error(ErrorKind::invalid, "This Arrow capsule has been used before.");
  }
  return std::make_shared<Received<Struct>>(held);
}

[[noreturn]] void refuse_array(const ArrowSchema& schema, const std::string& what) {
  throw Error(ErrorKind::invalid, std::string("Arrow column '") +
                                      (schema.name == nullptr ? "" : schema.name) + "' " + what);
}

// The sizes of an array's buffers in bytes, as far as the format determines them. The interface
// states no sizes, so other programs are trusted.
class BufferSizes {
 public:
  BufferSizes(const ArrowSchema& schema, const ArrowArray& array)
      : schema_(schema), array_(array), rows_(array.offset + array.length) {}

  std::int64_t of(std::int64_t number) const {
    if (array_.buffers[number] == nullptr) return 0;
    const std::string format = schema_.format;
    const char kind = format[0];
    if (number == 0 && format != "n" && !format.starts_with("+u")) return rows_ / 8 + 1;
    if (format == "u" || format == "z") {
      return number == 1 ? (rows_ + 1) * 4 : last_offset<std::int32_t>();
    }
    if (format == "U" || format == "Z") {
      return number == 1 ? (rows_ + 1) * 8 : last_offset<std::int64_t>();
    }
    if (format == "vu" || format == "vz") return view_bytes(number);
    if (format == "+l") return (rows_ + 1) * 4;
    if (format == "+L") return (rows_ + 1) * 8;
    if (format == "+vl") return rows_ * 4;
    if (format == "+vL") return rows_ * 8;
    if (format == "b") return rows_ / 8 + 1;
    if (kind == 'w') return rows_ * std::stoll(format.substr(2));
    if (kind == 't') {
      const bool is_short = format == "tdD" || format == "tts" || format == "ttm";
      return rows_ * (is_short ? 4 : 8);
    }
    return rows_ * static_cast<std::int64_t>(arrow_number_bytes(kind));
  }

 private:
  template <class Offset>
  std::int64_t last_offset() const {
    if (array_.buffers[1] == nullptr) return 0;
    return static_cast<const Offset*>(array_.buffers[1])[rows_];
  }

  // A view array has views, then any number of buffers, then an array of the buffers' sizes.
  std::int64_t view_bytes(std::int64_t number) const {
    if (number == 1) return rows_ * 16;
    const std::int64_t last = array_.n_buffers - 1;
    if (number == last) return (last - 2) * 8;
    return static_cast<const std::int64_t*>(array_.buffers[last])[number - 2];
  }

  const ArrowSchema& schema_;
  const ArrowArray& array_;
  const std::int64_t rows_;
};

using Owner = std::shared_ptr<Received<ArrowArray>>;

// (name, format, length, offset, nulls, buffers, children, dictionary)
py::tuple node_of(const ArrowSchema& schema, const ArrowArray& array, const Owner& owner) {
  if (array.length < 0 || array.offset < 0 || schema.n_children != array.n_children) {
    refuse_array(schema, "does not fit its type.");
  }
  const BufferSizes sizes(schema, array);
  py::list buffers;
  for (std::int64_t i = 0; i < array.n_buffers; ++i) {
    const std::int64_t bytes = sizes.of(i);
    if (bytes < 0) refuse_array(schema, "has offsets that do not ascend.");
    if (array.buffers[i] == nullptr) {
      buffers.append(py::none());
      continue;
    }
    const auto* data = static_cast<const std::uint8_t*>(array.buffers[i]);
    buffers.append(read_only(array_over(data, static_cast<std::size_t>(bytes), owner)));
  }
  py::list children;
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    children.append(node_of(*schema.children[i], *array.children[i], owner));
  }
  py::object dictionary = py::none();
  if (schema.dictionary != nullptr && array.dictionary != nullptr) {
    dictionary = node_of(*schema.dictionary, *array.dictionary, owner);
  }
  return py::make_tuple(py::str(schema.name == nullptr ? "" : schema.name), schema.format,
                        array.length, array.offset, array.null_count, buffers, children,
                        dictionary);
}

py::tuple import_array(const py::object& schema, const py::object& array) {
  const auto type = take_from<ArrowSchema>(schema, "arrow_schema");
  const auto data = take_from<ArrowArray>(array, "arrow_array");
  return node_of(*type->get(), *data->get(), data);
}

// Gives the batches of a stream.
class ArrowBatches {
 public:
  explicit ArrowBatches(const py::object& capsule)
      : stream_(take_from<ArrowArrayStream>(capsule, "arrow_array_stream")) {
    ArrowArrayStream* const stream = stream_->get();
    int failed;
    {
      const WithoutGil without_gil;
      failed = stream->get_schema(stream, schema_.get());
    }
    check(failed);
  }
  ~ArrowBatches() {
    const WithoutGil without_gil;  // the stream's owner may have threads to stop
    stream_.reset();
  }

  py::tuple next() {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    auto batch = std::make_shared<Received<ArrowArray>>();
    ArrowArrayStream* const stream = stream_->get();
    int failed;
    {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      failed = stream->get_next(stream, batch->get());
    }
    check(failed);
    if (batch->get()->release == nullptr) throw py::stop_iteration();
    return node_of(*schema_.get(), *batch->get(), batch);
  }

 private:
  void check(int failed) {
    if (failed == 0) return;
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    ArrowArrayStream* const stream = stream_->get();
    const char* const text = stream->get_last_error(stream);
    throw Error(ErrorKind::invalid,
                text != nullptr && *text != '\0'
                    ? std::string(text)
                    : std::string("An Arrow stream failed: ") + std::strerror(failed));
  }

  std::mutex mutex_;  // a stream serves one thread at a time
  std::shared_ptr<Received<ArrowArrayStream>> stream_;
  Received<ArrowSchema> schema_;
};

}  // namespace

void register_arrow_import(py::module_& module) {
  module.def("import_array", &import_array, py::arg("schema"), py::arg("array"));
  py::class_<ArrowBatches>(module, "ArrowBatches")
      .def(constructor<ArrowBatches, const py::object&>(), py::arg("stream"))
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &ArrowBatches::next);
}

}  // namespace tfrfast::python
