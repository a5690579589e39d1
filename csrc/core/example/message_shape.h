// The fields that are read from protobuf messages, compiled from paths into a tree for the decoder.
//
// A node is a message that some path leads through. A level is a sequence of elements: the records,
// the elements of a repeated field, or the entries of a map. Each level but the records' has a
// parent, and row splits, which say where the elements of each of the parent's elements begin. A
// leaf is a column: one value for each element of its level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/example/message_path.h"

namespace tfrfast {

struct FeatureSpec;

struct MessageShape {
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct FieldShape {
    MessageField field;
    unsigned wire_type = 0;
    std::uint32_t child = kNone;   // a node
    std::uint32_t level = kNone;   // of a repeated field's elements
    std::uint32_t values = kNone;  // leaves
    std::uint32_t names = kNone;
    std::uint32_t presence = kNone;
    std::uint32_t oneof = kNone;  // of all in the shape
  };

  struct Node {
    std::uint32_t level = 0;  // the message is an element of it, or part of an element
    bool is_map_entry = false;
    std::vector<FieldShape> entries;  // in the order of their paths
    std::vector<std::uint32_t> far;   // the same by their field numbers
    std::vector<std::uint32_t> near;  // the entry of each small field number, or kNone

    const FieldShape* find(std::uint32_t number) const noexcept {
      const std::uint32_t at = number < near.size() ? near[number] : find_far(number);
      return at == kNone ? nullptr : &entries[at];
    }
    std::uint32_t find_far(std::uint32_t number) const noexcept;
  };

  struct LevelShape {
    std::uint32_t parent = kNone;
    std::uint32_t key = kNone;          // of a map: the leaf of its keys
    std::vector<std::uint32_t> levels;  // whose parent it is
    std::vector<std::uint32_t> leaves;
    std::vector<std::uint32_t> oneofs;  // of which each element has at most one member
  };

  struct LeafShape {
    std::uint32_t level = 0;
    std::uint32_t slot = kNone;  // kNone: read for the decoder alone
    ValueType type = ValueType::int64;
    std::size_t value_bytes = 0;  // 0 for strings
    bool is_repeated = false;     // its level is the field's own
  };

  std::string message;
  std::vector<Node> nodes;         // the first is the record
  std::vector<LevelShape> levels;  // the first has the records
  std::vector<LeafShape> leaves;
  std::uint32_t oneofs = 0;

  // Throws Error(invalid) if paths contradict each other, or their specs.
  explicit MessageShape(const std::vector<const FeatureSpec*>& specs);

 private:
  void add(const FeatureSpec& spec, std::uint32_t slot);
  void add_oneof(const FeatureSpec& spec, std::uint32_t node, std::uint32_t at,
                 const std::vector<MessageField>& members);
  std::uint32_t add_entry(const FeatureSpec& spec, std::uint32_t node, const MessageField& field);
  std::uint32_t add_level(std::uint32_t parent);
  std::uint32_t add_leaf(std::uint32_t level, ValueType type, std::uint32_t slot);
};

}  // namespace tfrfast
