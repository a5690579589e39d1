// Tensors that TensorFlow serialized: TensorProto messages in byte strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/example/wire.h"

namespace tfrfast {

// What a tensor must be.
struct TensorForm {
  std::uint32_t type = 0;  // a number of TensorFlow's DataType
  // -1 as the first size stands for any size.
  std::vector<std::int64_t> shape;

  bool has_any_length() const noexcept { return !shape.empty() && shape[0] < 0; }
};

// The bytes of a value. 0 for types that are not read: strings, complex numbers, and others.
std::size_t tensor_value_bytes(std::uint32_t type) noexcept;

// A tensor of a form, found in a string that outlives it.
class SerializedTensor {
 public:
  // False if the string holds no such tensor; problem() says why. Every tensor that is found is
  // also what tf.io.parse_tensor gives. A tensor of any length must hold all its values, so that a
  // few bytes do not ask for much memory.
  bool find(WireBytes string, const TensorForm& form);
  const std::string& problem() const noexcept { return problem_; }

  std::size_t bytes() const noexcept { return values_ * value_bytes_; }
  // Writes bytes() bytes.
  void write(std::uint8_t* out) const noexcept;

 private:
  const std::uint8_t* read(WireBytes string);
  const std::uint8_t* read_shape(WireBytes shape);
  const std::uint8_t* read_values(std::uint32_t tag, const std::uint8_t* next,
                                  const std::uint8_t* end);
  void add(std::uint64_t value);

  std::uint32_t type_ = 0;
  std::uint32_t field_ = 0;  // of the values that stand alone
  bool is_unusual_ = false;
  std::vector<std::int64_t> sizes_;
  WireBytes content_;
  std::vector<std::uint8_t> alone_;  // the values outside the content
  std::size_t values_ = 0;
  std::size_t value_bytes_ = 0;
  std::string problem_;
};

}  // namespace tfrfast
