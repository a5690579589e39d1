// Imitates the part of TensorFlow's C API that kernels call, in memory. A test writes the inputs of
// a call and reads its outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c_api.h"

namespace tfrfast::tensorflow::testing {

// The memory of a tensor. Frees strings as TensorFlow's runtime does.
struct TensorMemory {
  TensorMemory() = default;
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  DataType type = DataType::int64;
  std::vector<std::int64_t> dims;
  void* data = nullptr;
  std::size_t bytes = 0;
  void (*release)(void*, std::size_t, void*) = nullptr;  // null: `data` is malloc's
  void* argument = nullptr;
};

std::int64_t element_count(const TensorMemory& memory);

// Frees the memory that a string owns.
void drop_string(const TString& string);

// One call of a kernel, as TensorFlow makes it.
class FakeCall {
 public:
  FakeCall();
  ~FakeCall();
  FakeCall(const FakeCall&) = delete;
  FakeCall& operator=(const FakeCall&) = delete;

  FakeCall& add_strings(const std::vector<std::string>& values);
  FakeCall& add_integers(const std::vector<std::int64_t>& values);
  FakeCall& expect_output(DataType type);  // the next output's type in the graph
  TF_OpKernelContext* context() { return context_.get(); }

  Code code() const;  // ok unless the kernel failed
  const std::string& message() const;

  // The outputs that the kernel has written, by number.
  const TensorMemory& output(std::size_t number) const;
  std::vector<std::string> strings(std::size_t output) const;
  std::vector<std::int64_t> integers(std::size_t output) const;
  void drop_output(std::size_t number);

 private:
  std::unique_ptr<TF_OpKernelContext> context_;
};

// Tensors that exist now.
std::int64_t live_tensors();

}  // namespace tfrfast::tensorflow::testing
