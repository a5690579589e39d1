#include "core/example/encode.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/example/entry_head.h"

namespace tfrfast {
namespace {

constexpr std::size_t kRowsAPiece = 512;
constexpr std::uint64_t kMaxExampleBytes = std::numeric_limits<std::int32_t>::max();

// A column and everything that all of its rows share.
class ColumnEncoder {
 public:
  explicit ColumnEncoder(const ColumnSource& source, const VarintWriter& varints)
      : source_(&source), varints_(&varints), key_(key_field(source.name)) {
    is_constant_ = source.present == nullptr && source.row_splits == nullptr &&
                   source.kind != ListKind::ints && source.offsets == nullptr;
    if (!is_constant_) return;
    constant_values_ = measure_values(0);
    opening_.resize(key_.size() + 4 * (1 + kMaxVarintBytes));
    auto* opening = reinterpret_cast<std::uint8_t*>(opening_.data());
    opening_.resize(static_cast<std::size_t>(head(constant_values_).put(opening) - opening));
  }

  const ColumnSource& source() const noexcept { return *source_; }
  bool is_constant() const noexcept { return is_constant_; }
  std::uint64_t constant_bytes() const noexcept { return head(constant_values_).entry_bytes(); }

  // Bytes of the row's values: packed numbers without tag and length, or strings with tags and
  // lengths.
  std::uint64_t measure_values(std::size_t row) const noexcept {
    const auto [first, end] = values_of(row);
    switch (source_->kind) {
      case ListKind::none:
        return 0;
      case ListKind::floats:
        return (end - first) * sizeof(float);
      case ListKind::ints:
        return varints_->measure(source_->ints + first, end - first);
      case ListKind::bytes:
        break;
    }
    if (source_->offsets == nullptr) return (end - first) * field_bytes(source_->value_bytes);
    std::uint64_t bytes = 0;
    for (std::size_t value = first; value < end; ++value) {
      bytes += field_bytes(
          static_cast<std::uint64_t>(source_->offsets[value + 1] - source_->offsets[value]));
    }
    return bytes;
  }

  EntryHead head(std::uint64_t values_bytes) const noexcept {
    const bool is_packed = source_->kind == ListKind::ints || source_->kind == ListKind::floats;
    return {key_, source_->kind, is_packed, values_bytes};
  }

  // Returns the row's end, or null if the row's values changed since measure_values().
  std::uint8_t* put_row(std::size_t row, std::uint64_t values_bytes, std::uint8_t* out,
                        const std::uint8_t* space_end) const noexcept {
    if (is_constant_) {
      std::memcpy(out, opening_.data(), opening_.size());
      return put_values(row, constant_values_, out + opening_.size(), space_end);
    }
    return put_values(row, values_bytes, head(values_bytes).put(out), space_end);
  }

 private:
  struct Values {
    std::size_t first;
    std::size_t end;
  };
  Values values_of(std::size_t row) const noexcept {
    if (source_->row_splits == nullptr) {
      return {row * source_->row_values, (row + 1) * source_->row_values};
    }
    return {static_cast<std::size_t>(source_->row_splits[row]),
            static_cast<std::size_t>(source_->row_splits[row + 1])};
  }

  std::uint8_t* put_values(std::size_t row, std::uint64_t values_bytes, std::uint8_t* out,
                           const std::uint8_t* space_end) const noexcept {
    const auto [first, end] = values_of(row);
    if (first == end) return out;
    switch (source_->kind) {
      case ListKind::none:
        return out;
      case ListKind::floats:
        std::memcpy(out, source_->floats + first, (end - first) * sizeof(float));
        return out + (end - first) * sizeof(float);
      case ListKind::ints: {
        // Integers that outgrow their measured size would take the space of the row's other
        // features.
        std::uint8_t* const ints_end =
            varints_->write(source_->ints + first, end - first, out, space_end);
        return ints_end == out + values_bytes ? ints_end : nullptr;
      }
      case ListKind::bytes:
        break;
    }
    for (std::size_t value = first; value < end; ++value) {
      std::size_t begin = value * source_->value_bytes;
      std::size_t bytes = source_->value_bytes;
      if (source_->offsets != nullptr) {
        begin = static_cast<std::size_t>(source_->offsets[value]);
        bytes = static_cast<std::size_t>(source_->offsets[value + 1]) - begin;
      }
      out = put_field_head(out, 1, bytes);
      if (bytes > 0) std::memcpy(out, source_->data + begin, bytes);
      out += bytes;
    }
    return out;
  }

  const ColumnSource* source_;
  const VarintWriter* varints_;
  std::string key_;  // a key_field()
  bool is_constant_ = false;
  std::uint64_t constant_values_ = 0;
  std::string opening_;  // of every row of a constant column
};

// Encodes all columns of a batch in two passes. The sizes come first and give every row's place.
// The bytes follow.
class BatchEncoder {
 public:
  BatchEncoder(std::span<const ColumnSource> columns, std::size_t rows) {
    // CPUID is slow in a virtual machine, so the kernel is chosen once.
    static const VarintWriter& varints = fastest_varint_writer();
    std::vector<const ColumnSource*> sorted;
    for (const ColumnSource& column : columns) sorted.push_back(&column);
    std::sort(sorted.begin(), sorted.end(),
              [](const ColumnSource* a, const ColumnSource* b) { return a->name < b->name; });
    for (const ColumnSource* column : sorted) {
      encoders_.emplace_back(*column, varints);
      if (encoders_.back().is_constant()) {
        constant_bytes_ += encoders_.back().constant_bytes();
      } else {
        ++varying_;
      }
    }
    values_bytes_.resize(rows * varying_);
  }

  // Writes the sizes of rows [first, end) to sizes[row + 1].
  void measure(std::size_t first, std::size_t end, std::int64_t* sizes) {
    for (std::size_t row = first; row < end; ++row) {
      std::uint64_t features = constant_bytes_;
      std::uint64_t* values_bytes = values_bytes_.data() + row * varying_;
      for (const ColumnEncoder& encoder : encoders_) {
        if (encoder.is_constant()) continue;
        const bool* present = encoder.source().present;
        if (present == nullptr || present[row]) {
          *values_bytes = encoder.measure_values(row);
          features += encoder.head(*values_bytes).entry_bytes();
        }
        ++values_bytes;
      }
      sizes[row + 1] = static_cast<std::int64_t>(field_bytes(features));
    }
  }

  void put(std::size_t first, std::size_t end, const RecordBatch& batch) const {
    for (std::size_t row = first; row < end; ++row) {
      std::uint8_t* out = batch.data() + batch.offsets()[row];
      const std::uint8_t* space_end = batch.data() + batch.offsets()[row + 1];
      out = put_features(static_cast<std::uint64_t>(space_end - out), out);
      const std::uint64_t* values_bytes = values_bytes_.data() + row * varying_;
      for (const ColumnEncoder& encoder : encoders_) {
        const std::uint64_t bytes = encoder.is_constant() ? 0 : *values_bytes++;
        const bool* present = encoder.source().present;
        if (present != nullptr && !present[row]) continue;
        out = encoder.put_row(row, bytes, out, space_end);
        if (out == nullptr) {
          throw Error(ErrorKind::invalid,
                      "Feature '" + encoder.source().name +
                          "': another thread changed its values while they were being encoded.");
        }
      }
    }
  }

 private:
  // Opens the field that holds all features of an Example of `example_bytes` bytes.
  static std::uint8_t* put_features(std::uint64_t example_bytes, std::uint8_t* out) noexcept {
    std::uint64_t features = example_bytes - 2;
    while (field_bytes(features) > example_bytes) --features;
    return put_field_head(out, 1, features);
  }

  std::vector<ColumnEncoder> encoders_;
  std::size_t varying_ = 0;  // columns that are not constant
  std::uint64_t constant_bytes_ = 0;
  std::vector<std::uint64_t> values_bytes_;  // of each row's varying columns
};

}  // namespace

std::shared_ptr<RecordBatch> encode_examples(std::span<const ColumnSource> columns,
                                             std::size_t rows, unsigned threads) {
  auto batch = std::make_shared<RecordBatch>(rows);
  BatchEncoder encoder(columns, rows);
  const std::size_t pieces = (rows + kRowsAPiece - 1) / kRowsAPiece;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    encoder.measure(piece * kRowsAPiece, std::min(rows, (piece + 1) * kRowsAPiece),
                    batch->offsets());
  });
  std::int64_t* offsets = batch->offsets();
  for (std::size_t row = 0; row < rows; ++row) {
    if (static_cast<std::uint64_t>(offsets[row + 1]) > kMaxExampleBytes) {
      throw Error(ErrorKind::feature,
                  "Row " + std::to_string(row) + " makes an Example of " +
                      std::to_string(offsets[row + 1]) +
                      " bytes, but no parser accepts an Example of 2 GiB or more. Split the row.",
                  {"", static_cast<std::int64_t>(row), {}});
    }
    offsets[row + 1] += offsets[row];
    batch->indices()[row] = static_cast<std::int64_t>(row);
  }
  batch->allocate_data();
  parallel_for(pieces, threads, [&](std::size_t piece) {
    encoder.put(piece * kRowsAPiece, std::min(rows, (piece + 1) * kRowsAPiece), *batch);
  });
  return batch;
}

}  // namespace tfrfast
