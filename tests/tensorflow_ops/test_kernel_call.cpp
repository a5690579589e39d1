#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fake_c_api.h"
#include "tensorflow/c_api.h"
#include "tensorflow/kernel_call.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using tfrfast::tensorflow::testing::drop_string;
using tfrfast::tensorflow::testing::FakeCall;
using tfrfast::tensorflow::testing::live_tensors;

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

TEST_CASE("kernel call: inputs and outputs are what the graph gave and gets") {
  FakeCall fake;
  fake.add_strings({"one", std::string(50, 'x')}).add_integers({7}).add_strings({"alone"});
  run_kernel(fake.context(), [](KernelCall& call) {
    call.set_integers(0, std::vector<std::int64_t>{call.integer(1)});
    call.set_string(1, call.string(2));
    const auto in = call.strings(0);
    const auto out = call.allocate_strings(2, in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i].write_copy(in[i].read().data(), in[i].read().size());
    }
    call.set_integers(3, std::vector<std::int64_t>{1, -2, 3});
    call.set_integers(4, {});
  });
  CHECK(fake.code() == Code::ok);
  CHECK(fake.integers(0) == std::vector<std::int64_t>{7});
  CHECK(fake.output(1).dims.empty());
  CHECK(fake.strings(1) == std::vector<std::string>{"alone"});
  CHECK(fake.strings(2) == std::vector<std::string>{"one", std::string(50, 'x')});
  CHECK(fake.integers(3) == std::vector<std::int64_t>{1, -2, 3});
  CHECK(fake.integers(4).empty());
  CHECK(live_tensors() == 0);
}

TEST_CASE("kernel call: an input of another type, or not a scalar, fails the call") {
  FakeCall type;
  type.add_integers({7});
  run_kernel(type.context(), [](KernelCall& call) { call.string(0); });
  CHECK(type.code() == Code::invalid_argument);
  CHECK(type.message() == "Input 0 has the wrong type.");

  FakeCall size;
  size.add_integers({7, 8});
  run_kernel(size.context(), [](KernelCall& call) { call.integer(0); });
  CHECK(size.code() == Code::invalid_argument);
  CHECK(size.message() == "Input 0 must be a scalar, but has 2 elements.");

  FakeCall missing;
  run_kernel(missing.context(), [](KernelCall& call) { call.integer(0); });
  CHECK(missing.code() == Code::internal);
  CHECK(missing.message() == "There are fewer inputs.");
  CHECK(live_tensors() == 0);
}

TEST_CASE("kernel call: whatever a kernel throws becomes the failure of its call") {
  const auto failure = [](const auto& compute) {
    FakeCall fake;
    run_kernel(fake.context(), compute);
    return encode_error(fake.code(), fake.message());
  };
  CHECK(failure([](KernelCall&) { throw KernelFailure{Code::data_loss, "a"}; }) == "15 a");
  CHECK(failure([](KernelCall&) { throw decode_error("5 b"); }) == "5 b");
  CHECK(failure([](KernelCall&) { throw Error(ErrorKind::invalid, "c"); }) == "3 c");
  CHECK(failure([](KernelCall&) { throw std::bad_alloc(); }) == "8 There is no memory left.");
  CHECK(failure([](KernelCall&) { throw std::runtime_error("d"); }) == "13 d");
}

TEST_CASE("kernel call: a tensor takes over its memory, of which it has as much as its shape") {
  FakeCall fake;
  void* memory = nullptr;
  run_kernel(fake.context(), [&](KernelCall& call) {
    PooledBuffer buffer(1000);
    memory = buffer.data();
    std::fill_n(buffer.as<std::int64_t>(), 6, 5);
    call.set_tensor(0, DataType::int64, {2, 3}, std::move(buffer));
  });
  REQUIRE(fake.code() == Code::ok);
  CHECK(fake.output(0).data == memory);
  CHECK(fake.output(0).bytes == 6 * 8);
  CHECK(fake.integers(0) == std::vector<std::int64_t>(6, 5));
  CHECK(live_tensors() == 0);
}

TEST_CASE("kernel call: memory that is too small for the shape is refused") {
  for (const Shape& shape : {Shape{1 << 20}, Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    FakeCall fake;
    run_kernel(fake.context(), [&](KernelCall& call) {
      call.set_tensor(0, DataType::int64, shape, PooledBuffer(64));
    });
    CHECK(fake.code() == Code::invalid_argument);
    CHECK(fake.message() == "Output 0 has a type or shape that its memory is too small for.");
  }
}

TEST_CASE("kernel call: strings that no memory can hold are refused") {
  FakeCall fake;
  run_kernel(fake.context(), [](KernelCall& call) {
    call.allocate_strings(0, Shape{std::int64_t{1} << 40, std::int64_t{1} << 40});
  });
  CHECK(fake.code() == Code::resource_exhausted);
}

TEST_CASE("kernel call: values are of the graph's type, if that takes as many bytes") {
  const auto set_values = [](FakeCall& fake) {
    run_kernel(fake.context(),
               [](KernelCall& call) { call.set_values(0, {4}, 4, PooledBuffer(64)); });
  };
  FakeCall same;
  set_values(same.expect_output(DataType::boolean));
  REQUIRE(same.code() == Code::ok);
  CHECK(same.output(0).type == DataType::boolean);
  FakeCall other, none;
  set_values(other.expect_output(DataType::int64));
  set_values(none);
  for (const FakeCall* refused : {&other, &none}) {
    CHECK(refused->code() == Code::invalid_argument);
    CHECK(refused->message() ==
          "Output 0 has another type in the graph than in the features. Build the graph again.");
  }
}

TEST_CASE("error text: each error has the code that TensorFlow's users look for") {
  const std::pair<ErrorKind, Code> kinds[] = {
      {ErrorKind::corrupt, Code::data_loss},
      {ErrorKind::truncated, Code::data_loss},
      {ErrorKind::stale_index, Code::failed_precondition},
      {ErrorKind::closed, Code::failed_precondition},
      {ErrorKind::memory, Code::resource_exhausted},
      {ErrorKind::invalid, Code::invalid_argument},
      {ErrorKind::out_of_range, Code::invalid_argument},
      {ErrorKind::feature, Code::invalid_argument},
  };
  for (const auto& [kind, code] : kinds) CHECK(code_of(Error(kind, "")) == code);
  const std::pair<int, Code> numbers[] = {
      {ENOENT, Code::not_found},          {ENOTDIR, Code::not_found},
      {EACCES, Code::permission_denied},  {EISDIR, Code::failed_precondition},
      {EMFILE, Code::resource_exhausted}, {EIO, Code::unknown},
  };
  for (const auto& [number, code] : numbers) {
    CHECK(code_of(Error(ErrorKind::io, "", {}, number)) == code);
  }
}

TEST_CASE("error text: what was encoded is decoded") {
  for (const char* message : {"", "Two words.", " 7 begins with a space", "two\nlines"}) {
    CAPTURE(message);
    const KernelFailure decoded = decode_error(encode_error(Code::data_loss, message));
    CHECK(decoded.code == Code::data_loss);
    CHECK(decoded.message == message);
  }
  CHECK(encode_error(Error(ErrorKind::corrupt, "Bad.")) == "15 Bad.");
}

TEST_CASE("error text: text without a code is a message of an unknown error") {
  for (const char* text : {"", "15", "15x Bad.", "x15 Bad.", " 15 Bad.", "99999999999 Bad."}) {
    CAPTURE(text);
    const KernelFailure decoded = decode_error(text);
    CHECK(decoded.code == Code::unknown);
    CHECK(decoded.message == text);
  }
}

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
