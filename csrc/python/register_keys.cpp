// Finds records by key.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/keys/key_hash.h"
#include "core/keys/key_table.h"
#include "core/keys/record_content.h"
#include "core/keys/record_key.h"
#include "core/read/batch_space.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/stored_file.h"
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
using Hashes = Numbers<std::uint64_t>;

constexpr std::size_t kPartKeys = 4096;
constexpr std::size_t kAhead = 16;  // a search's memory is prefetched this many searches ahead

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

// An open key file. Any number of threads.
class PythonKeyBytes {
 public:
  PythonKeyBytes(const std::string& path, const PythonReader& reader)
      : file_([&] {
          const std::shared_ptr<const Reader> data = reader.frames();
          const WithoutGil without_gil;
          std::shared_ptr<const StoredFile> opened = open_sidecar(path);
          data->shards().refuse_unless_believed(
              *opened, "The key file",
              "Remove it, or keep your own elsewhere: tfr.build_keys(..., folder=...).");
          return opened;
        }()) {}

  std::uint64_t size() const noexcept { return file_->bytes(); }

  // Returns the first bytes of the file, which nobody else can change.
  py::array read(std::size_t count) const {
    return filled_array<std::uint8_t>(count,
                                      [&](std::uint8_t* out) { file_->read(0, out, count); });
  }

 private:
  const std::shared_ptr<const StoredFile> file_;
};

// The entries of a key file. Their numbers are those of existing records.
class PythonKeyTable {
 public:
  // `numbers` has a row of bytes for each hash. Nobody changes the arrays.
  PythonKeyTable(std::string feature, Hashes hashes, KeyBytes numbers)
      : feature_(std::move(feature)),
        hashes_(std::move(hashes)),
        numbers_(std::move(numbers)),
        table_(span_of(hashes_), numbers_.data(), static_cast<unsigned>(numbers_.shape(1))) {
    if (numbers_.ndim() != 2 || numbers_.shape(0) != hashes_.size() || numbers_.shape(1) > 8) {
      throw Error(ErrorKind::invalid, "There must be one number for each hash.");
    }
  }

  // Returns the record with this key, which is bytes or an int. None if no record has the key.
  py::object item(const PythonReader& reader, const py::object& key) const {
    if (PyBytes_Check(key.ptr())) return record_of(reader, bytes_of(key));
    return record_of(reader, key.cast<std::int64_t>());
  }

  // For each hash, returns the number of the first record with that hash, or -1.
  py::array find(const Hashes& hashes) const {
    const std::span<const std::uint64_t> wanted = span_of(hashes);
    const std::size_t count = wanted.size();
    return filled_array<std::int64_t>(count, [&](std::int64_t* numbers) {
      parallel_for(count / kPartKeys + 1, count < 4 * kPartKeys ? 1 : usable_processors(),
                   [&](std::size_t part) {
                     const std::size_t end = std::min(count, (part + 1) * kPartKeys);
                     for (std::size_t i = part * kPartKeys; i < end; ++i) {
                       if (i + kAhead < end) table_.prefetch(wanted[i + kAhead]);
                       const std::size_t entry = table_.first_entry(wanted[i]);
                       numbers[i] = table_.has(entry, wanted[i]) ? table_.number(entry) : -1;
                     }
                   });
    });
  }

  // The numbers of all records whose key has this hash, ascending.
  py::array numbers(std::uint64_t hash) const {
    std::vector<std::int64_t> all;
    for (std::size_t i = table_.first_entry(hash); table_.has(i, hash); ++i) {
      all.push_back(table_.number(i));
    }
    return to_array(all);
  }

 private:
  template <class Key>
  py::object record_of(const PythonReader& open, const Key& key) const {
    // Another thread may close the reader meanwhile.
    const std::shared_ptr<const Reader> reader = open.frames();
    const std::uint64_t hash = hash_of_key(key);
    for (std::size_t i = table_.first_entry(hash); table_.has(i, hash); ++i) {
      const Row row = locate_one(*reader, static_cast<std::uint64_t>(table_.number(i)));
      check_space(row);
      const auto size = static_cast<py::ssize_t>(row.frame.payload_bytes);
      auto record = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, size));
      if (!record) throw py::error_already_set();
      auto* const out = reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(record.ptr()));
      const bool has_key = [&] {
        const WithoutGil without_gil;
        reader->read_into(row, out);
        return record_has_key({out, row.frame.payload_bytes}, feature_, key);
      }();
      if (has_key) return record;
    }
    return py::none();
  }

  const std::string feature_;
  const Hashes hashes_;
  const KeyBytes numbers_;
  const KeyTable table_;
};

template <class KeyAt>
py::array check(const RecordBatch& records, std::string_view feature, std::size_t count,
                const KeyAt& key_at) {
  if (records.size() != count) {
    throw Error(ErrorKind::invalid, "There must be one record for each key.");
  }
  return filled_array<bool>(count, [&](bool* out) {
    parallel_for(count / kPartKeys + 1, usable_processors(), [&](std::size_t part) {
      const std::size_t end = std::min(count, (part + 1) * kPartKeys);
      for (std::size_t i = part * kPartKeys; i < end; ++i) {
        out[i] = record_has_key(records[i], feature, key_at(i));
      }
    });
  });
}

// Return for each record whether its feature is its key.
py::array check_strings(const RecordBatch& records, std::string_view feature, const KeyBytes& data,
                        const KeyInts& offsets) {
  const ByteStrings keys("Key", data, offsets);
  return check(records, feature, keys.size(), [&](std::size_t i) { return keys[i]; });
}
py::array check_ints(const RecordBatch& records, std::string_view feature, const KeyInts& keys) {
  const std::span<const std::int64_t> wanted = span_of(keys);
  return check(records, feature, wanted.size(), [=](std::size_t i) { return wanted[i]; });
}

}  // namespace

void register_keys(py::module_& module) {
  module.def("hash_strings", &hash_strings, py::arg("data"), py::arg("offsets"));
  module.def("hash_ints", &hash_ints, py::arg("keys"));
  module.def("hash_records", &hash_records, py::arg("records"), py::arg("feature"));
  module.def("compare_features", &compare_features, py::arg("ours"), py::arg("theirs"));
  py::class_<PythonKeyBytes>(module, "KeyBytes")
      .def(constructor<PythonKeyBytes, const std::string&, const PythonReader&>(), py::arg("path"),
           py::arg("reader"))
      .def("__len__", &PythonKeyBytes::size)
      .def("read", &PythonKeyBytes::read, py::arg("count"));
  py::class_<PythonKeyTable>(module, "KeyTable")
      .def(constructor<PythonKeyTable, std::string, Hashes, KeyBytes>(), py::arg("feature"),
           py::arg("hashes"), py::arg("numbers"))
      .def("item", &PythonKeyTable::item, py::arg("reader"), py::arg("key"))
      .def("find", &PythonKeyTable::find, py::arg("hashes"))
      .def("numbers", &PythonKeyTable::numbers, py::arg("hash"));
  module.def("check_strings", &check_strings, py::arg("records"), py::arg("feature"),
             py::arg("data"), py::arg("offsets"));
  module.def("check_ints", &check_ints, py::arg("records"), py::arg("feature"), py::arg("keys"));
}

}  // namespace tfrfast::python
