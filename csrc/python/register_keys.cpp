// Records by key.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/keys/key_hash.h"
#include "core/keys/key_table.h"
#include "core/keys/record_key.h"
#include "core/read/room.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/open_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using KeyBytes = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>;
using KeyInts = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using KeyHashes = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

constexpr std::size_t kAhead = 16;  // how many searches later memory is needed that is fetched now
constexpr std::size_t kPartKeys = 4096;

// The strings of an array, whose bounds were copied before they were checked.
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

// A key file's tables, which lie in arrays, and the feature that they are of.
class KeyIndex {
 public:
  KeyIndex(py::array hashes, py::array numbers, unsigned number_bytes, std::string feature)
      : hashes_(std::move(hashes)),
        numbers_(std::move(numbers)),
        feature_(std::move(feature)),
        table_({static_cast<const std::uint64_t*>(hashes_.data()),
                static_cast<std::size_t>(hashes_.nbytes()) / sizeof(std::uint64_t)},
               static_cast<const std::uint8_t*>(numbers_.data()), number_bytes) {
    if (number_bytes < 1 || number_bytes > 8 ||
        static_cast<std::size_t>(numbers_.nbytes()) / number_bytes < table_.size() ||
        !is_aligned(hashes_)) {
      throw Error(ErrorKind::invalid, "These tables of keys do not fit each other.");
    }
  }

  // The record with this key, of bytes or an int; None if there is none.
  py::object item(const OpenReader& reader, const py::object& key) const {
    if (PyBytes_Check(key.ptr())) {
      const WireBytes bytes{reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(key.ptr())),
                            static_cast<std::size_t>(PyBytes_GET_SIZE(key.ptr()))};
      return record_of(reader, hash_of_key(bytes), bytes);
    }
    const std::int64_t number = key.cast<std::int64_t>();
    return record_of(reader, hash_of_key(number), number);
  }

  // For each hash, the number of the first record that has it; -1 if there is none.
  py::array find(const KeyHashes& hashes) const {
    const auto count = static_cast<std::size_t>(hashes.size());
    py::array_t<std::int64_t> found(hashes.size());
    std::int64_t* const out = found.mutable_data();
    const std::uint64_t* const wanted = hashes.data();
    const WithoutGil without_gil;
    const std::size_t parts = count / kPartKeys + 1;
    parallel_for(parts, count < 4 * kPartKeys ? 1 : usable_processors(), [&](std::size_t part) {
      const std::size_t end = std::min(count, (part + 1) * kPartKeys);
      for (std::size_t i = part * kPartKeys; i < end; ++i) {
        if (i + kAhead < end) table_.prefetch(wanted[i + kAhead]);
        const std::size_t entry = table_.first_entry(wanted[i]);
        out[i] = table_.has(entry, wanted[i]) ? table_.number(entry) : -1;
      }
    });
    return found;
  }

  // The numbers of all records whose key has this hash, ascending.
  std::vector<std::int64_t> numbers(std::uint64_t hash) const {
    std::vector<std::int64_t> all;
    for (std::size_t i = table_.first_entry(hash); table_.has(i, hash); ++i) {
      all.push_back(table_.number(i));
    }
    return all;
  }

  // Whether each record has its key.
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
  py::object record_of(const OpenReader& open, std::uint64_t hash, const Key& key) const {
    const std::shared_ptr<const Reader> reader = open.get();  // others may close it meanwhile
    for (std::size_t i = table_.first_entry(hash); table_.has(i, hash); ++i) {
      const Row row = reader->locate(static_cast<std::uint64_t>(table_.number(i)));
      check_room(row);
      const auto size = static_cast<py::ssize_t>(row.frame.payload_bytes);
      auto record = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, size));
      if (!record) throw py::error_already_set();
      auto* const out = reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(record.ptr()));
      const bool is_it = [&] {
        const WithoutGil without_gil;
        reader->read_into(row, out);
        return record_has_key({out, row.frame.payload_bytes}, feature_, key);
      }();
      if (is_it) return record;
    }
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
        out[i] = record_has_key(records[i], feature_, key_at(i));
      }
    });
    return results;
  }

  py::array hashes_, numbers_;
  std::string feature_;
  KeyTable table_;
};

}  // namespace

void register_keys(py::module_& module) {
  module.def("hash_strings", &hash_strings, py::arg("data"), py::arg("offsets"));
  module.def("hash_ints", &hash_ints, py::arg("keys"));
  py::class_<KeyIndex>(module, "KeyIndex")
      .def(constructor<KeyIndex, py::array, py::array, unsigned, std::string>(), py::arg("hashes"),
           py::arg("numbers"), py::arg("number_bytes"), py::arg("feature"))
      .def("item", &KeyIndex::item, py::arg("reader"), py::arg("key"))
      .def("find", &KeyIndex::find, py::arg("hashes"))
      .def("numbers", &KeyIndex::numbers, py::arg("hash"))
      .def("check_strings", &KeyIndex::check_strings, py::arg("records"), py::arg("data"),
           py::arg("offsets"))
      .def("check_ints", &KeyIndex::check_ints, py::arg("records"), py::arg("keys"));
}

}  // namespace tfrfast::python
