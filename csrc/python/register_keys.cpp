// Finds records by key.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/keys/key_file.h"
#include "core/keys/key_hash.h"
#include "core/keys/record_key.h"
#include "core/read/batch_space.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using KeyBytes = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>;
using KeyInts = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using KeyHashes = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

constexpr std::size_t kPartKeys = 4096;

// The strings of an array. The offsets are copied before they are checked.
class KeyStrings {
 public:
  KeyStrings(const KeyBytes& data, const KeyInts& offsets)
      : data_(data.data()), offsets_(offsets.data(), offsets.data() + offsets.size()) {
    std::int64_t before = 0;
    for (const std::int64_t offset : offsets_) {
      if (offset < before || offset > data.size()) {
        throw Error(ErrorKind::invalid, "The offsets of the keys do not ascend within their data.");
      }
      before = offset;
    }
  }
  std::size_t size() const noexcept { return offsets_.empty() ? 0 : offsets_.size() - 1; }
  WireBytes operator[](std::size_t key) const noexcept {
    return {data_ + offsets_[key], static_cast<std::size_t>(offsets_[key + 1] - offsets_[key])};
  }

 private:
  const std::uint8_t* data_;
  std::vector<std::int64_t> offsets_;
};

py::array hash_strings(const KeyBytes& data, const KeyInts& offsets) {
  const KeyStrings keys(data, offsets);
  py::array_t<std::uint64_t> hashes(static_cast<py::ssize_t>(keys.size()));
  std::uint64_t* const out = hashes.mutable_data();
  const WithoutGil without_gil;
  for (std::size_t i = 0; i < keys.size(); ++i) out[i] = hash_of_key(keys[i]);
  return hashes;
}

py::array hash_ints(const KeyInts& keys) {
  py::array_t<std::uint64_t> hashes(keys.size());
  std::uint64_t* const out = hashes.mutable_data();
  const std::int64_t* const in = keys.data();
  const auto count = static_cast<std::size_t>(keys.size());
  const WithoutGil without_gil;
  for (std::size_t i = 0; i < count; ++i) out[i] = hash_of_key(in[i]);
  return hashes;
}

// An open key file of a reader's data.
class PythonKeyFile {
 public:
  PythonKeyFile(const std::string& path, const PythonReader& reader)
      : file_([&] {
          const std::shared_ptr<const Reader> data = reader.frames();
          const WithoutGil without_gil;
          return KeyFile::open(path, data->shards());
        }()) {}

  const KeyFile& file() const noexcept { return *file_; }

  // Returns the record with this key, which is bytes or an int. None if no record has the key.
  py::object item(const PythonReader& reader, const py::object& key) const {
    if (PyBytes_Check(key.ptr())) {
      const WireBytes bytes{reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(key.ptr())),
                            static_cast<std::size_t>(PyBytes_GET_SIZE(key.ptr()))};
      return record_of(reader, hash_of_key(bytes), bytes);
    }
    const std::int64_t number = key.cast<std::int64_t>();
    return record_of(reader, hash_of_key(number), number);
  }

  // For each hash, returns the number of the first record with that hash, or -1.
  py::array find(const KeyHashes& hashes) const {
    py::array_t<std::int64_t> found(hashes.size());
    std::int64_t* const out = found.mutable_data();
    const std::span<const std::uint64_t> wanted(hashes.data(),
                                                static_cast<std::size_t>(hashes.size()));
    const WithoutGil without_gil;
    file_->find(wanted, out);
    return found;
  }

  // The numbers of all records whose key has this hash, ascending.
  std::vector<std::uint64_t> numbers(std::uint64_t hash) const {
    std::vector<std::uint64_t> all;
    for (auto found = file_->first(hash); found.number; found = file_->after(found.entry, hash)) {
      all.push_back(*found.number);
    }
    file_->refuse_if_changed();
    return all;
  }

  // The hashes of all entries, ascending.
  py::array hashes() const {
    py::array_t<std::uint64_t> all(static_cast<py::ssize_t>(file_->entry_count()));
    std::uint64_t* const out = all.mutable_data();
    const WithoutGil without_gil;
    file_->copy_hashes(out);
    return all;
  }

  // Returns for each record whether it has its key.
  py::array check_strings(const RecordBatch& records, const KeyBytes& data,
                          const KeyInts& offsets) const {
    const KeyStrings keys(data, offsets);
    return check(records, keys.size(), [&](std::size_t i) { return keys[i]; });
  }
  py::array check_ints(const RecordBatch& records, const KeyInts& keys) const {
    const std::int64_t* const wanted = keys.data();
    return check(records, static_cast<std::size_t>(keys.size()),
                 [=](std::size_t i) { return wanted[i]; });
  }

 private:
  template <class Key>
  py::object record_of(const PythonReader& open, std::uint64_t hash, const Key& key) const {
    // Another thread may close the reader meanwhile.
    const std::shared_ptr<const Reader> reader = open.frames();
    for (auto found = file_->first(hash); found.number; found = file_->after(found.entry, hash)) {
      const Row row = reader->locate(*found.number);
      check_space(row);
      const auto size = static_cast<py::ssize_t>(row.frame.payload_bytes);
      auto record = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, size));
      if (!record) throw py::error_already_set();
      auto* const out = reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(record.ptr()));
      const bool has_key = [&] {
        const WithoutGil without_gil;
        reader->read_into(row, out);
        return record_has_key({out, row.frame.payload_bytes}, file_->feature(), key);
      }();
      if (has_key) return record;
    }
    file_->refuse_if_changed();
    return py::none();
  }

  template <class KeyAt>
  py::array check(const RecordBatch& records, std::size_t count, const KeyAt& key_at) const {
    if (records.size() != count) {
      throw Error(ErrorKind::invalid, "There must be one record for each key.");
    }
    py::array_t<bool> results(static_cast<py::ssize_t>(count));
    bool* const out = results.mutable_data();
    const WithoutGil without_gil;
    parallel_for(count / kPartKeys + 1, usable_processors(), [&](std::size_t part) {
      const std::size_t end = std::min(count, (part + 1) * kPartKeys);
      for (std::size_t i = part * kPartKeys; i < end; ++i) {
        out[i] = record_has_key(records[i], file_->feature(), key_at(i));
      }
    });
    return results;
  }

  const std::shared_ptr<const KeyFile> file_;
};

}  // namespace

void register_keys(py::module_& module) {
  module.def("hash_strings", &hash_strings, py::arg("data"), py::arg("offsets"));
  module.def("hash_ints", &hash_ints, py::arg("keys"));
  py::class_<PythonKeyFile>(module, "KeyFile")
      .def(constructor<PythonKeyFile, const std::string&, const PythonReader&>(), py::arg("path"),
           py::arg("reader"))
      .def_property_readonly("feature",
                             [](const PythonKeyFile& keys) { return keys.file().feature(); })
      .def_property_readonly("has_ints",
                             [](const PythonKeyFile& keys) { return keys.file().has_ints(); })
      .def_property_readonly("num_records",
                             [](const PythonKeyFile& keys) { return keys.file().record_count(); })
      .def_property_readonly("num_entries",
                             [](const PythonKeyFile& keys) { return keys.file().entry_count(); })
      .def_property_readonly("num_distinct",
                             [](const PythonKeyFile& keys) { return keys.file().distinct_count(); })
      .def_property_readonly("fingerprint",
                             [](const PythonKeyFile& keys) { return keys.file().fingerprint(); })
      .def_property_readonly("stamp", [](const PythonKeyFile& keys) { return keys.file().stamp(); })
      .def("hashes", &PythonKeyFile::hashes)
      .def("item", &PythonKeyFile::item, py::arg("reader"), py::arg("key"))
      .def("find", &PythonKeyFile::find, py::arg("hashes"))
      .def("numbers", &PythonKeyFile::numbers, py::arg("hash"))
      .def("check_strings", &PythonKeyFile::check_strings, py::arg("records"), py::arg("data"),
           py::arg("offsets"))
      .def("check_ints", &PythonKeyFile::check_ints, py::arg("records"), py::arg("keys"));
}

}  // namespace tfrfast::python
