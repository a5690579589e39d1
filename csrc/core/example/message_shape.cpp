#include "core/example/message_shape.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/example/schema.h"

namespace tfrfast {
namespace {

constexpr std::uint32_t kNearNumbers = 64;
constexpr std::uint32_t kLastNumber = (std::uint32_t{1} << 29) - 1;

[[noreturn]] void refuse_path(const FeatureSpec& spec, const std::string& why) {
  throw Error(ErrorKind::invalid, "Feature '" + spec.name + "': " + why);
}

}  // namespace

const MessageShape::Entry* MessageShape::Node::find_far(std::uint32_t number) const noexcept {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [=](const Entry& entry) { return entry.field.number == number; });
  return found == entries.end() ? nullptr : &*found;
}

MessageShape::MessageShape(const std::vector<const FeatureSpec*>& specs) {
  nodes.emplace_back();
  levels.emplace_back();
  for (std::size_t slot = 0; slot < specs.size(); ++slot) {
    const FeatureSpec& spec = *specs[slot];
    if (!spec.path) refuse_path(spec, "features of a message and of an Example do not mix.");
    if (slot == 0) message = spec.path->message;
    if (message != spec.path->message) {
      refuse_path(spec, "it is of " + spec.path->message + ", and the features before it of " +
                            message + ". Records hold one message.");
    }
    add(spec, static_cast<std::uint32_t>(slot));
  }
  for (Node& node : nodes) {
    node.near.assign(kNearNumbers, kNone);
    for (std::uint32_t at = 0; at < node.entries.size(); ++at) {
      const std::uint32_t number = node.entries[at].field.number;
      if (number < kNearNumbers) node.near[number] = at;
    }
  }
}

std::uint32_t MessageShape::add_level(std::uint32_t parent) {
  const auto number = static_cast<std::uint32_t>(levels.size());
  levels.emplace_back().parent = parent;
  levels[parent].levels.push_back(number);
  return number;
}

std::uint32_t MessageShape::add_leaf(std::uint32_t level, ValueType type, std::uint32_t slot) {
  const auto number = static_cast<std::uint32_t>(leaves.size());
  leaves.push_back({level, slot, type, item_bytes_of(type)});
  levels[level].leaves.push_back(number);
  return number;
}

// Returns the place of the field's entry in its node, which is added if it is not there.
std::uint32_t MessageShape::add_entry(const FeatureSpec& spec, std::uint32_t node,
                                      const MessageField& field) {
  if (field.number == 0 || field.number > kLastNumber || field.type == FieldType::none) {
    refuse_path(spec, "no message has such a field.");
  }
  if (!std::ranges::is_sorted(field.names, {}, &EnumName::number)) {
    refuse_path(spec, "the numbers of its enum are not in order.");
  }
  std::vector<Entry>& entries = nodes[node].entries;
  for (std::uint32_t at = 0; at < entries.size(); ++at) {
    MessageField& known = entries[at].field;
    if (known.number != field.number) continue;
    if (known.type != field.type) refuse_path(spec, "its path contradicts another feature's.");
    return at;
  }
  entries.emplace_back().field = field;
  entries.back().wire_type = wire_type_of(field.type);
  return static_cast<std::uint32_t>(entries.size() - 1);
}

void MessageShape::add(const FeatureSpec& spec, std::uint32_t slot) {
  const MessagePath& path = *spec.path;
  if (path.fields.empty()) refuse_path(spec, "its path is empty.");
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < path.fields.size(); ++i) {
    const MessageField& field = path.fields[i];
    const bool is_last = i + 1 == path.fields.size();
    const std::uint32_t at = add_entry(spec, node, field);
    // A rival that comes after the field clears it.
    for (const MessageField& rival : field.rivals) {
      const std::uint32_t other = add_entry(spec, node, rival);
      std::vector<std::uint32_t>& clears = nodes[node].entries[other].clears;
      if (other != at && std::find(clears.begin(), clears.end(), at) == clears.end()) {
        clears.push_back(at);
      }
    }
    if (Entry& entry = nodes[node].entries[at]; entry.field != field) {
      // It was added as a rival, without the facts that reading it takes.
      if (entry.level != kNone || entry.values != kNone || entry.child != kNone ||
          entry.names != kNone || entry.presence != kNone) {
        refuse_path(spec, "its path contradicts another feature's.");
      }
      entry.field = field;
    }
    const bool is_presence = is_last && path.content == PathContent::presence;
    if (field.repeated && !is_presence && nodes[node].entries[at].level == kNone) {
      const std::uint32_t level = add_level(nodes[node].level);
      nodes[node].entries[at].level = level;
    }
    if (is_last) {
      if (is_message(field.type) && !is_presence) refuse_path(spec, "its path ends at a message.");
      if (is_presence && field.repeated) refuse_path(spec, "a repeated field has no presence.");
      if (path.content == PathContent::names && field.type != FieldType::enumeration) {
        refuse_path(spec, "only an enum has names.");
      }
      const bool is_own = field.repeated;
      const std::uint32_t level = is_own ? nodes[node].entries[at].level : nodes[node].level;
      if (spec.type != path.value_type() || !spec.shape.empty() ||
          spec.layout != (level == 0 ? &kFixedLayout : &kRaggedLayout)) {
        refuse_path(spec, "its type or layout is not that of its path.");
      }
      Entry& entry = nodes[node].entries[at];
      std::uint32_t& leaf = is_presence                          ? entry.presence
                            : path.content == PathContent::names ? entry.names
                                                                 : entry.values;
      // The keys of a map are read for the decoder, and may also be a column.
      if (leaf == kNone) {
        leaf = add_leaf(level, spec.type, slot);
      } else if (leaves[leaf].slot == kNone) {
        leaves[leaf].slot = slot;
      } else {
        refuse_path(spec, "its path appears twice.");
      }
      leaves[leaf].is_repeated = is_own;
      return;
    }
    if (!is_message(field.type)) refuse_path(spec, "its path goes on after a plain value.");
    if (nodes[node].entries[at].child == kNone) {
      const auto child = static_cast<std::uint32_t>(nodes.size());
      const std::uint32_t own = nodes[node].entries[at].level;
      nodes[node].entries[at].child = child;
      nodes.emplace_back().level = own == kNone ? nodes[node].level : own;
      if (field.is_map()) {
        if (field.entry.size() != 2 || !field.repeated || is_message(field.entry[0].type)) {
          refuse_path(spec, "a map's entry has a key and a value.");
        }
        nodes[child].is_map_entry = true;
        const std::uint32_t key = add_entry(spec, child, field.entry[0]);
        add_entry(spec, child, field.entry[1]);
        MessagePath of_key;
        of_key.fields = {field.entry[0]};
        const std::uint32_t leaf = add_leaf(own, of_key.value_type(), kNone);
        nodes[child].entries[key].values = leaf;
        levels[own].key = leaf;
        levels[own].node = child;
      }
    }
    node = nodes[node].entries[at].child;
  }
}

}  // namespace tfrfast
