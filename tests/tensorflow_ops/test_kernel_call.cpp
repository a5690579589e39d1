#include <doctest/doctest.h>

#include <stdexcept>

#include "fake_c_api.h"
#include "tensorflow/kernel_call.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using tfrfast::tensorflow::testing::FakeCall;
using tfrfast::tensorflow::testing::live_tensors;

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
