#include "fake_c_api.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

using namespace tfrfast::tensorflow;
using namespace tfrfast::tensorflow::testing;

struct TF_Status {
  int code = 0;
  std::string message;
};
// A handle of one owner; the memory is shared.
struct TF_Tensor {
  std::shared_ptr<TensorMemory> memory;
};
struct TF_OpKernelContext {
  std::vector<std::shared_ptr<TensorMemory>> inputs;
  std::vector<std::shared_ptr<TensorMemory>> outputs;
  std::vector<DataType> expected;
  TF_Status failure;
};

namespace tfrfast::tensorflow {
namespace testing {
namespace {

std::int64_t live = 0;

std::size_t size_of(int type) {
  switch (static_cast<DataType>(type)) {
    case DataType::int64:
      return 8;
    case DataType::boolean:
      return 1;
    default:
      return 0;
  }
}

std::shared_ptr<TensorMemory> make_tensor(DataType type, std::vector<std::int64_t> dims,
                                          std::size_t bytes) {
  auto memory = std::make_shared<TensorMemory>();
  memory->type = type;
  memory->dims = std::move(dims);
  memory->bytes = bytes;
  memory->data = std::calloc(1, bytes + 1);
  return memory;
}

void put_output(TF_OpKernelContext* context, int number, std::shared_ptr<TensorMemory> memory) {
  const auto at = static_cast<std::size_t>(number);
  if (context->outputs.size() <= at) context->outputs.resize(at + 1);
  context->outputs[at] = std::move(memory);
}

void get_input(TF_OpKernelContext* context, int number, TF_Tensor** tensor, TF_Status* status) {
  if (static_cast<std::size_t>(number) >= context->inputs.size()) {
    *status = {static_cast<int>(Code::internal), "There are fewer inputs."};
    return;
  }
  ++live;
  *tensor = new TF_Tensor{context->inputs[static_cast<std::size_t>(number)]};
}

TF_Tensor* allocate_output(TF_OpKernelContext* context, int number, int type,
                           const std::int64_t* dims, int dim_count, std::size_t bytes, TF_Status*) {
  auto memory = make_tensor(static_cast<DataType>(type), {dims, dims + dim_count}, bytes);
  put_output(context, number, memory);
  ++live;
  return new TF_Tensor{std::move(memory)};
}

TF_Tensor* new_tensor(int type, const std::int64_t* dims, int dim_count, void* data,
                      std::size_t bytes, void (*release)(void*, std::size_t, void*),
                      void* argument) {
  auto memory = std::make_shared<TensorMemory>();
  memory->type = static_cast<DataType>(type);
  memory->dims.assign(dims, dims + dim_count);
  memory->data = data;
  memory->bytes = bytes;
  memory->release = release;
  memory->argument = argument;
  ++live;
  return new TF_Tensor{std::move(memory)};
}

CApi make_api() {
  CApi api{};
  api.TF_NewStatus = [] { return new TF_Status; };
  api.TF_DeleteStatus = [](TF_Status* status) { delete status; };
  api.TF_SetStatus = [](TF_Status* status, int code, const char* message) {
    *status = {code, message};
  };
  api.TF_GetCode = [](const TF_Status* status) { return status->code; };
  api.TF_Message = [](const TF_Status* status) { return status->message.c_str(); };
  api.TF_GetInput = &get_input;
  api.TF_AllocateOutput = &allocate_output;
  api.TF_SetOutput = [](TF_OpKernelContext* context, int number, const TF_Tensor* tensor,
                        TF_Status*) { put_output(context, number, tensor->memory); };
  api.TF_NumOutputs = [](TF_OpKernelContext* context) {
    return static_cast<int>(context->expected.size());
  };
  api.TF_ExpectedOutputDataType = [](TF_OpKernelContext* context, int number) {
    return static_cast<int>(context->expected.at(static_cast<std::size_t>(number)));
  };
  api.TF_OpKernelContext_Failure = [](TF_OpKernelContext* context, TF_Status* status) {
    context->failure = *status;
  };
  api.TF_DataTypeSize = &size_of;
  api.TF_NewTensor = &new_tensor;
  api.TF_TensorData = [](const TF_Tensor* tensor) { return tensor->memory->data; };
  api.TF_TensorElementCount = [](const TF_Tensor* tensor) {
    return element_count(*tensor->memory);
  };
  api.TF_TensorType = [](const TF_Tensor* tensor) {
    return static_cast<int>(tensor->memory->type);
  };
  api.TF_DeleteTensor = [](TF_Tensor* tensor) {
    --live;
    delete tensor;
  };
  return api;
}

}  // namespace

std::int64_t element_count(const TensorMemory& memory) {
  std::int64_t count = 1;
  for (const std::int64_t size : memory.dims) count *= size;
  return count;
}

void drop_string(const TString& string) {
  std::uint64_t words[3];
  std::memcpy(words, &string, sizeof words);
  if ((words[0] & 3) == 1) std::free(reinterpret_cast<void*>(words[2]));
  if ((words[0] & 3) == 3) {
    auto* owner = reinterpret_cast<StringOwner*>(words[2]);
    if (owner != nullptr) owner->unref(owner);
  }
}

TensorMemory::~TensorMemory() {
  if (type == DataType::string) {
    const auto* all = static_cast<const TString*>(data);
    for (std::int64_t i = 0; i < element_count(*this); ++i) drop_string(all[i]);
  }
  if (release != nullptr) {
    release(data, bytes, argument);
  } else {
    std::free(data);
  }
}

FakeCall::FakeCall() : context_(std::make_unique<TF_OpKernelContext>()) {}
FakeCall::~FakeCall() = default;

FakeCall& FakeCall::add_strings(const std::vector<std::string>& values) {
  auto memory = make_tensor(DataType::string, {static_cast<std::int64_t>(values.size())},
                            values.size() * sizeof(TString));
  auto* out = static_cast<TString*>(memory->data);
  for (const std::string& value : values) (out++)->write_copy(value.data(), value.size());
  context_->inputs.push_back(std::move(memory));
  return *this;
}

FakeCall& FakeCall::add_integers(const std::vector<std::int64_t>& values) {
  auto memory =
      make_tensor(DataType::int64, {static_cast<std::int64_t>(values.size())}, values.size() * 8);
  if (!values.empty()) std::memcpy(memory->data, values.data(), values.size() * 8);
  context_->inputs.push_back(std::move(memory));
  return *this;
}

FakeCall& FakeCall::expect_output(DataType type) {
  context_->expected.push_back(type);
  return *this;
}

Code FakeCall::code() const {
  return static_cast<Code>(context_->failure.code);
}
const std::string& FakeCall::message() const {
  return context_->failure.message;
}

const TensorMemory& FakeCall::output(std::size_t number) const {
  REQUIRE(number < context_->outputs.size());
  REQUIRE(context_->outputs[number] != nullptr);
  return *context_->outputs[number];
}

std::vector<std::string> FakeCall::strings(std::size_t number) const {
  const TensorMemory& memory = output(number);
  REQUIRE(memory.type == DataType::string);
  const auto* first = static_cast<const TString*>(memory.data);
  std::vector<std::string> strings;
  for (std::int64_t i = 0; i < element_count(memory); ++i) strings.emplace_back(first[i].read());
  return strings;
}

std::vector<std::int64_t> FakeCall::integers(std::size_t number) const {
  const TensorMemory& memory = output(number);
  REQUIRE(memory.type == DataType::int64);
  const auto* first = static_cast<const std::int64_t*>(memory.data);
  return {first, first + element_count(memory)};
}

void FakeCall::drop_output(std::size_t number) {
  context_->outputs.at(number).reset();
}

std::int64_t live_tensors() {
  return live;
}

}  // namespace testing

const CApi* c_api() noexcept {
  static const CApi api = testing::make_api();
  return &api;
}

}  // namespace tfrfast::tensorflow
