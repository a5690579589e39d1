// Decodes serialized protobuf messages to columns: the fields of a MessageShape, with the values
// that protobuf's own parser gives, and an error for each record that it refuses. Fields outside
// the shape count as unknown: their bytes are skipped by their tags, and not looked into.
//
// One pass over the bytes, straight into the columns. An element of a level begins with the
// defaults of its leaves, and a later value overwrites an earlier one, so singular fields need no
// other treatment: their messages merge, and the last value wins. What a later field undoes (the
// member of a oneof that was set, the earlier entries of a map with the same key) is taken out of
// the columns. Strings are kept as places in the record until its end, and then copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/example/columns.h"
#include "core/example/complaint.h"
#include "core/example/message_shape.h"
#include "core/example/schema.h"

namespace tfrfast {

// One thread at a time. After a throw, begin() starts again.
class MessageDecoder {
 public:
  explicit MessageDecoder(std::shared_ptr<const FeatureSchema> schema);  // a schema of messages

  void begin();
  // Decodes the next record. Throws `feature` for a record that protobuf would refuse.
  void decode(WireBytes record, const RecordPlace& place);
  // One column for each feature, in the schema's order.
  std::vector<Column> finish();

 private:
  using FieldShape = MessageShape::FieldShape;
  using Node = MessageShape::Node;
  using Next = const std::uint8_t*;

  struct LevelElements {
    std::size_t count = 0;            // elements
    std::size_t record_start = 0;     // elements before this record
    GrowingBuffer splits;             // where the elements of each of the parent's elements begin
    std::vector<std::uint32_t> maps;  // levels of maps whose parent it is
  };

  struct Elements {  // of elements
    std::size_t begin, end;
  };

  struct LeafValues {
    GrowingBuffer values;
    GrowingBuffer offsets;           // strings: where each starts
    std::vector<WireBytes> strings;  // of this record
    std::size_t bytes = 0;           // strings: of all earlier records
    std::uint64_t default_bits = 0;
    WireBytes default_string;
  };

  Next read_message(std::uint32_t node, Next next, Next end, unsigned depth, std::uint32_t group);
  Next read_entry(const Node& node, const FieldShape& entry, std::uint32_t tag, Next next, Next end,
                  unsigned depth);
  Next read_child(const FieldShape& entry, Next next, Next end, unsigned depth);
  Next read_packed(const Node& node, const FieldShape& entry, Next next, Next end);
  Next read_string(const FieldShape& entry, Next next, Next end);
  void put(const Node& node, const FieldShape& entry, std::uint64_t bits);
  void mark_present(const FieldShape& entry);

  void open_element(std::uint32_t level);
  void keep_last_entries(std::uint32_t level);
  void keep(std::uint32_t level, std::size_t first, const std::vector<Elements>& kept);
  void read_keys(std::uint32_t level, std::size_t first);
  void cut(std::uint32_t level, std::size_t count);
  void clear(const FieldShape& entry);
  void copy_strings();
  Column finish_leaf(std::uint32_t leaf);
  Next fail(Next at) noexcept;

  std::shared_ptr<const FeatureSchema> schema_;
  const MessageShape& shape_;
  std::vector<LevelElements> levels_;
  std::vector<LeafValues> leaves_;
  std::vector<std::uint32_t> string_leaves_;
  std::deque<std::string> numbers_;  // of enums, without a name, in this record
  std::vector<const FieldShape*>
      members_;  // of each oneof, the one that is set in the last element
  std::vector<std::uint8_t> key_bytes_;
  std::vector<WireBytes> keys_;  // of the entries of a map
  std::vector<std::int64_t> scratch_;
  bool saw_unknown_ = false;  // in this map entry, outside its messages
  WireBytes record_;
  Next failed_at_ = nullptr;
  const char* failure_ = nullptr;
};

}  // namespace tfrfast
