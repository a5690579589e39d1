// Finds records by key.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/keys/key_file.h"
#include "core/keys/key_hash.h"
#include "core/keys/record_content.h"
#include "core/keys/record_key.h"
#include "core/read/batch_space.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/classes.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using KeyBytes = Numbers<std::uint8_t>;
using KeyInts = Numbers<std::int64_t>;

constexpr std::size_t kPartKeys = 4096;

py::array hash_strings(const KeyBytes& data, const KeyInts& offsets) {
  const ByteStrings keys("Key", data, offsets);
  return filled_array<std::uint64_t>(keys.size(), [&](std::uint64_t* out) {
    for (std::size_t i = 0; i < keys.size(); ++i) out[i] = hash_of_key(keys[i]);
  });
}

py::array hash_ints(const KeyInts& keys) {
  return filled_array<std::uint64_t>(span_of(keys).size(), [in = span_of(keys)](auto* out) {
    for (const std::int64_t key : in) *out++ = hash_of_key(key);
  });
}

// Returns for each record the hashes of its key, of its content and of its bytes, and the form of
// its key. Without a feature's name, no record has a key.
py::tuple hash_records(const RecordBatch& records, const std::optional<std::string>& feature) {
  const auto rows = static_cast<py::ssize_t>(records.size());
  py::array_t<std::uint64_t> keys(rows), contents(rows), bytes(rows);
  py::array_t<std::uint8_t> forms(rows);
  std::uint64_t* const key = keys.mutable_data();
  std::uint64_t* const content = contents.mutable_data();
  std::uint64_t* const whole = bytes.mutable_data();
  std::uint8_t* const form = forms.mutable_data();
  {
    const WithoutGil without_gil;
    ContentHasher hasher;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const ContentHasher::Hashes hashes = hasher.hash(records[i]);
      content[i] = key[i] = hashes.content;
      whole[i] = hashes.bytes;
      form[i] = static_cast<std::uint8_t>(feature ? hash_key_of(records[i], *feature, key[i])
                                                  : KeyForm::absent);
    }
  }
  return py::make_tuple(keys, contents, bytes, forms);
}

// Compares pairs of records. Returns for each feature that differs its name, the number of such
// pairs and the first of them, and the number of pairs that are compared by their bytes.
py::tuple compare_features(const RecordBatch& ours, const RecordBatch& theirs) {
  if (ours.size() != theirs.size()) {
    throw Error(ErrorKind::invalid, "Records are compared in pairs.");
  }
  FeatureDifferences differences;
  std::size_t unnamed = 0;
  {
    const WithoutGil without_gil;
    for (std::size_t i = 0; i < ours.size(); ++i) unnamed += !differences.add(ours[i], theirs[i]);
  }
  py::list all;
  for (const auto& each : differences.differences()) {
    all.append(py::make_tuple(py::bytes(each.name), each.count, each.first));
  }
  return py::make_tuple(all, unnamed);
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
      return record_of(reader, hash_of_key(bytes_of(key)), bytes_of(key));
    }
    const std::int64_t number = key.cast<std::int64_t>();
    return record_of(reader, hash_of_key(number), number);
  }

  // For each hash, returns the number of the first record with that hash, or -1.
  py::array find(const Numbers<std::uint64_t>& hashes) const {
    const std::span<const std::uint64_t> wanted = span_of(hashes);
    return filled_array<std::int64_t>(wanted.size(),
                                      [&](std::int64_t* out) { file_->find(wanted, out); });
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
    const std::size_t count = file_->entry_count();
    return filled_array<std::uint64_t>(
        count, [&](std::uint64_t* out) { file_->copy_entries(0, {out, count}, nullptr); });
  }

  // Returns the hashes of at most `count` entries, from the entry `first` on, and the numbers of
  // their records.
  py::tuple entries(std::size_t first, std::size_t count) const {
    first = std::min(first, file_->entry_count());
    count = std::min(count, file_->entry_count() - first);
    py::array_t<std::uint64_t> hashes(static_cast<py::ssize_t>(count));
    py::array_t<std::int64_t> numbers(static_cast<py::ssize_t>(count));
    const std::span<std::uint64_t> out(hashes.mutable_data(), count);
    std::int64_t* const number = numbers.mutable_data();
    {
      const WithoutGil without_gil;
      file_->copy_entries(first, out, number);
    }
    return py::make_tuple(hashes, numbers);
  }

  // Returns for each record whether it has its key.
  py::array check_strings(const RecordBatch& records, const KeyBytes& data,
                          const KeyInts& offsets) const {
    const ByteStrings keys("Key", data, offsets);
    return check(records, keys.size(), [&](std::size_t i) { return keys[i]; });
  }
  py::array check_ints(const RecordBatch& records, const KeyInts& keys) const {
    const std::span<const std::int64_t> wanted = span_of(keys);
    return check(records, wanted.size(), [=](std::size_t i) { return wanted[i]; });
  }

 private:
  template <class Key>
  py::object record_of(const PythonReader& open, std::uint64_t hash, const Key& key) const {
    // Another thread may close the reader meanwhile.
    const std::shared_ptr<const Reader> reader = open.frames();
    for (auto found = file_->first(hash); found.number; found = file_->after(found.entry, hash)) {
      const Row row = locate_one(*reader, *found.number);
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
    return filled_array<bool>(count, [&](bool* out) {
      parallel_for(count / kPartKeys + 1, usable_processors(), [&](std::size_t part) {
        const std::size_t end = std::min(count, (part + 1) * kPartKeys);
        for (std::size_t i = part * kPartKeys; i < end; ++i) {
          out[i] = record_has_key(records[i], file_->feature(), key_at(i));
        }
      });
    });
  }

  const std::shared_ptr<const KeyFile> file_;
};

}  // namespace

void register_keys(py::module_& module) {
  module.def("hash_strings", &hash_strings, py::arg("data"), py::arg("offsets"));
  module.def("hash_ints", &hash_ints, py::arg("keys"));
  module.def("hash_records", &hash_records, py::arg("records"), py::arg("feature"));
  module.def("compare_features", &compare_features, py::arg("ours"), py::arg("theirs"));
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
      .def("entries", &PythonKeyFile::entries, py::arg("first"), py::arg("count"))
      .def("item", &PythonKeyFile::item, py::arg("reader"), py::arg("key"))
      .def("find", &PythonKeyFile::find, py::arg("hashes"))
      .def("numbers", &PythonKeyFile::numbers, py::arg("hash"))
      .def("check_strings", &PythonKeyFile::check_strings, py::arg("records"), py::arg("data"),
           py::arg("offsets"))
      .def("check_ints", &PythonKeyFile::check_ints, py::arg("records"), py::arg("keys"));
}

}  // namespace tfrfast::python
