#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "fake_c_api.h"
#include "tensorflow/c_api.h"
#include "tensorflow/kernel_call.h"

using namespace tfrfast::tensorflow;
using tfrfast::tensorflow::testing::drop_string;

namespace {

// While the object lives, records are handed out as views.
struct Views {
  Views() { hand_out_views(true); }
  ~Views() { hand_out_views(false); }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;
};

struct Shared {
  std::vector<std::string> values = {"", "short", std::string(22, 's'), std::string(23, 'l'),
                                     std::string(5000, 'v')};
  std::vector<TString> strings = std::vector<TString>(values.size());
  std::shared_ptr<const int> memory = std::make_shared<const int>(0);

  void write() {
    write_shared_strings(
        strings.data(), values.size(),
        [this](std::size_t i) {
          return std::span(reinterpret_cast<const std::uint8_t*>(values[i].data()),
                           values[i].size());
        },
        memory);
  }
  bool is_in_place(std::size_t i) const { return strings[i].read().data() == values[i].data(); }
};

}  // namespace

TEST_CASE("strings: a copy holds the bytes, whatever their number") {
  for (const std::size_t count : {0, 1, 21, 22, 23, 24, 31, 32, 5000}) {
    CAPTURE(count);
    const std::string value(count, 'x');
    TString string;
    string.write_copy(value.data(), count);
    CHECK(string.read() == value);
    CHECK(string.read().data() != value.data());
    CHECK(string.read().data()[count] == '\0');
    drop_string(string);
  }
}

TEST_CASE("strings: the two lowest bits say what a string is") {
  const auto kind = [](const TString& string) {
    return *reinterpret_cast<const char*>(&string) & 3;
  };
  const std::string value(50, 'x');
  TString string;
  string.write_copy(value.data(), 22);
  CHECK(kind(string) == 0);
  string.write_copy(value.data(), 23);
  CHECK(kind(string) == 1);
  drop_string(string);
  string.write_view(value.data(), 50, nullptr);
  CHECK(kind(string) == 3);
  CHECK(string.read().data() == value.data());
  CHECK(string.read().size() == 50);
}

TEST_CASE("strings: a string at an offset from its own place is read") {
  struct {
    TString string;
    char bytes[6] = {'o', 'f', 'f', 's', 'e', 't'};
  } mapped;
  const std::uint32_t parts[2] = {6 << 2 | 2, sizeof(TString)};
  std::memcpy(static_cast<void*>(&mapped.string), parts, sizeof parts);
  CHECK(mapped.string.read() == "offset");
}

TEST_CASE("strings: where the runtime does not count, shared strings are copies") {
  Shared shared;
  shared.write();
  CHECK(shared.memory.use_count() == 1);
  for (std::size_t i = 0; i < shared.values.size(); ++i) {
    CHECK(shared.strings[i].read() == shared.values[i]);
    CHECK_FALSE(shared.is_in_place(i));
    drop_string(shared.strings[i]);
  }
}

TEST_CASE("strings: where it counts, long ones are views that keep the memory to the last") {
  const Views views;
  Shared shared;
  shared.write();
  for (std::size_t i = 0; i < shared.values.size(); ++i) {
    CAPTURE(i);
    CHECK(shared.strings[i].read() == shared.values[i]);
    CHECK(shared.is_in_place(i) == (i >= 3));
  }
  CHECK(shared.memory.use_count() == 2);

  // The runtime copies a view and counts another reference.
  const TString copy = shared.strings[4];
  StringOwner* owner = nullptr;
  std::memcpy(&owner, reinterpret_cast<const char*>(&copy) + 16, sizeof owner);
  owner->ref(owner);
  drop_string(shared.strings[3]);
  drop_string(shared.strings[4]);
  CHECK(shared.memory.use_count() == 2);
  CHECK(owner->unref(owner));
  CHECK(shared.memory.use_count() == 1);
}

TEST_CASE("strings: short ones alone do not keep the memory") {
  const Views views;
  Shared shared;
  shared.values.resize(3);
  shared.write();
  CHECK(shared.memory.use_count() == 1);
  CHECK(shared.strings[2].read() == shared.values[2]);
}
