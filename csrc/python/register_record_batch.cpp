#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbering.h"
#include "core/read/record_batch.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Batch = std::shared_ptr<RecordBatch>;

std::size_t row_of(const RecordBatch& batch, py::ssize_t row) {
  return static_cast<std::size_t>(
      number_below(static_cast<std::int64_t>(batch.size()), row, "Row"));
}

Batch take_rows(const RecordBatch& batch, const std::vector<std::int64_t>& rows) {
  const WithoutGil without_gil;
  return batch.rows(rows);
}

// The rows of a mask, or of an array of row numbers.
std::vector<std::int64_t> rows_of(const RecordBatch& batch, const py::object& key) {
  const auto count = static_cast<std::int64_t>(batch.size());
  const py::array array = py::array::ensure(key);
  if (!array || array.dtype().kind() != 'b' || array.ndim() != 1) {
    PyErr_Clear();
    return record_numbers(key, count, "Row");
  }
  if (array.size() != count) {
    throw py::index_error("The mask has " + std::to_string(array.size()) +
                          " entries, but there are " + std::to_string(count) + " rows.");
  }
  const Numbers<bool> mask(array);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    if (mask.data()[row]) rows.push_back(row);
  }
  return rows;
}

py::bytes payload_of(const RecordBatch& batch, std::size_t row) {
  return to_bytes(batch[row]);
}

py::array_t<std::uint8_t> data_of(const Batch& batch) {
  return array_over(batch->data(), batch->data_bytes(), batch);
}

py::object view_of(const Batch& batch, py::ssize_t row) {
  const auto payload = (*batch)[row_of(*batch, row)];
  const py::array_t<std::uint8_t> array = array_over(payload.data(), payload.size(), batch);
  const auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(array.ptr()));
  if (!view) throw py::error_already_set();
  return view.attr("toreadonly")();
}

py::list list_of(const RecordBatch& batch) {
  py::list all(batch.size());
  for (std::size_t row = 0; row < batch.size(); ++row) all[row] = payload_of(batch, row);
  return all;
}

py::list byte_strings(const Numbers<std::uint8_t>& data, const Numbers<std::int64_t>& offsets) {
  const ByteStrings strings("String", data, offsets);
  py::list all(strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) all[i] = to_bytes(strings[i]);
  return all;
}

// Copies everything before checking, because a thread without the GIL may change the arrays.
Batch batch_from_parts(const Numbers<std::uint8_t>& data, const Numbers<std::int64_t>& offsets,
                       const Numbers<std::int64_t>& indices, const Numbers<bool>& valid,
                       const std::optional<Numbers<std::int64_t>>& source_starts) {
  const auto rows = static_cast<std::size_t>(indices.size());
  const auto bytes = static_cast<std::size_t>(data.size());
  auto batch = std::make_shared<RecordBatch>(rows);
  bool fits = static_cast<std::size_t>(offsets.size()) == rows + 1 &&
              static_cast<std::size_t>(valid.size()) == rows;
  if (fits) {
    std::memcpy(batch->offsets(), offsets.data(), (rows + 1) * sizeof(std::int64_t));
    fits = batch->offsets()[0] == 0 && batch->data_bytes() == bytes;
  }
  for (std::size_t row = 0; fits && row < rows; ++row) {
    fits = batch->offsets()[row] <= batch->offsets()[row + 1];
  }
  if (!fits) {
    throw Error(ErrorKind::invalid,
                "Offsets must ascend from 0 to the number of bytes, one more than there are rows.");
  }
  if (rows != 0) {
    std::memcpy(batch->indices(), indices.data(), rows * sizeof(std::int64_t));
    std::memcpy(batch->valid(), valid.data(), rows);
  }
  for (std::size_t row = 0; row < rows; ++row) batch->valid()[row] = batch->is_real(row);
  if (source_starts) {
    batch->set_source_starts(std::make_shared<const std::vector<std::int64_t>>(
        source_starts->data(), source_starts->data() + source_starts->size()));
  }
  batch->allocate_data();
  if (bytes != 0) std::memcpy(batch->data(), data.data(), bytes);
  return batch;
}

py::array_t<std::int64_t> source_starts_of(const RecordBatch& batch) {
  static constexpr std::int64_t kOnlyOne = 0;
  const RecordBatch::SourceStarts& starts = batch.source_starts();
  return starts == nullptr ? py::array_t<std::int64_t>(1, &kOnlyOne) : to_array(*starts);
}

py::array_t<std::int64_t> sources_of(const RecordBatch& batch) {
  py::array_t<std::int64_t> sources(static_cast<py::ssize_t>(batch.size()));
  std::int64_t* const out = sources.mutable_data();
  const RecordBatch::SourceStarts& starts = batch.source_starts();
  for (std::size_t row = 0; row < batch.size(); ++row) {
    out[row] = starts == nullptr
                   ? 0
                   : std::upper_bound(starts->begin(), starts->end(), batch.indices()[row]) -
                         starts->begin() - 1;
  }
  return sources;
}

}  // namespace

void register_record_batch(py::module_& module) {
  py::class_<RecordBatch, Batch>(module, "RecordBatch",
                                 "Many records side by side: `data[offsets[i]:offsets[i + 1]]`.\n\n"
                                 "`batch[i]` is a record. A slice, a mask or a list of row numbers "
                                 "makes a RecordBatch of these rows, a copy.\n\n"
                                 "    batch = reader[100:200]\n"
                                 "    batch[0], batch[[5, 3]].tolist(), batch.indices")
      .def(py::init(&batch_from_parts), py::arg("data"), py::arg("offsets"), py::arg("indices"),
           py::arg("valid"), py::arg("source_starts") = py::none())
      .def("__len__", &RecordBatch::size)
      .def("__getitem__", [](const RecordBatch& batch,
                             py::ssize_t row) { return payload_of(batch, row_of(batch, row)); })
      .def("__getitem__",
           [](const RecordBatch& batch, const py::slice& slice) {
             return take_rows(batch, slice_numbers(slice, batch.size()));
           })
      .def("__getitem__",
           [](const RecordBatch& batch, const py::object& key) {
             return take_rows(batch, rows_of(batch, key));
           })
      .def("__iter__",
           [](const py::object& batch) {
             return py::reinterpret_steal<py::object>(PySeqIter_New(batch.ptr()));
           })
      .def("view", &view_of, py::arg("row"),
           "The record as a memoryview, without a copy; it keeps the batch's memory alive.")
      .def("tolist", &list_of, "All records as a list of bytes.")
      .def_property_readonly("data", &data_of, "All payloads, one after the other (uint8).")
      .def_property_readonly(
          "offsets",
          [](const Batch& batch) {
            return read_only(array_over(batch->offsets_to_show(), batch->size() + 1, batch));
          },
          "Each payload's start in `data`, and the end of the last payload (int64, read-only).")
      .def_property_readonly(
          "indices",
          [](const Batch& batch) { return array_over(batch->indices(), batch->size(), batch); },
          "The records' numbers (int64).")
      .def_property_readonly(
          "valid",
          [](const Batch& batch) { return array_over(batch->valid(), batch->size(), batch); },
          "False for rows that are padding (bool).")
      .def_property_readonly("sources", &sources_of,
                             "The number of each record's source in a Mixture (int64); 0 without a "
                             "Mixture.")
      .def_property_readonly("source_starts", &source_starts_of,
                             "The first record number of each source (int64).")
      .def("__reduce__",
           [](const py::object& self) {
             return py::make_tuple(
                 py::type::of(self),
                 py::make_tuple(self.attr("data"), self.attr("offsets"), self.attr("indices"),
                                self.attr("valid"), self.attr("source_starts")));
           })
      .def("__repr__", [](const RecordBatch& batch) {
        return "RecordBatch(" + std::to_string(batch.size()) + " records, " +
               std::to_string(batch.data_bytes()) + " bytes)";
      });
  module.def("byte_strings", &byte_strings, py::arg("data"), py::arg("offsets"));
}

}  // namespace tfrfast::python
