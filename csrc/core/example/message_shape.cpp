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

// Whether two are the same but for their oneofs, of which an entry has the number instead.
bool is_same(const MessageField& a, const MessageField& b) {
  return a.number == b.number && a.type == b.type && a.repeated == b.repeated &&
         a.checks_utf8 == b.checks_utf8 && a.is_closed == b.is_closed && a.names == b.names &&
         a.entry == b.entry;
}

void set_field(MessageShape::FieldShape& entry, const MessageField& field) {
  entry.field = {field.number, field.type, field.repeated, field.checks_utf8, field.is_closed,
                 field.names,  {},         field.entry};
}

}  // namespace

std::uint32_t MessageShape::Node::find_far(std::uint32_t number) const noexcept {
  const auto number_of = [&](std::uint32_t at) { return entries[at].field.number; };
  const auto found = std::ranges::lower_bound(far, number, {}, number_of);
  return found == far.end() || number_of(*found) != number ? kNone : *found;
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
  std::vector<FieldShape>& entries = nodes[node].entries;
  if (const std::uint32_t at = nodes[node].find_far(field.number); at != kNone) {
    const MessageField& known = entries[at].field;
    if (known.type != field.type) refuse_path(spec, "its path contradicts another feature's.");
    return at;
  }
  const auto at = static_cast<std::uint32_t>(entries.size());
  FieldShape& entry = entries.emplace_back();
  set_field(entry, field);
  entry.wire_type = wire_type_of(field.type);
  std::vector<std::uint32_t>& far = nodes[node].far;
  const auto is_before = [&](std::uint32_t other) {
    return entries[other].field.number < field.number;
  };
  far.insert(std::ranges::partition_point(far, is_before), at);
  return at;
}

// A member that is set clears the one that was. All members are entries, also those that no path
// asks for.
void MessageShape::add_oneof(const FeatureSpec& spec, std::uint32_t node, std::uint32_t at,
                             const std::vector<MessageField>& members) {
  std::uint32_t oneof = nodes[node].entries[at].oneof;
  if (oneof == kNone) {
    oneof = oneofs++;
    levels[nodes[node].level].oneofs.push_back(oneof);
    nodes[node].entries[at].oneof = oneof;
  }
  for (const MessageField& member : members) {
    FieldShape& entry = nodes[node].entries[add_entry(spec, node, member)];
    if (entry.oneof == kNone) entry.oneof = oneof;
    if (entry.oneof != oneof) refuse_path(spec, "its path contradicts another feature's.");
  }
}

void MessageShape::add(const FeatureSpec& spec, std::uint32_t slot) {
  const MessagePath& path = *spec.path;
  if (path.fields.empty()) refuse_path(spec, "its path is empty.");
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < path.fields.size(); ++i) {
    const MessageField& field = path.fields[i];
    const bool is_last = i + 1 == path.fields.size();
    const std::uint32_t at = add_entry(spec, node, field);
    if (!field.oneof.empty()) add_oneof(spec, node, at, field.oneof);
    if (FieldShape& entry = nodes[node].entries[at]; !is_same(entry.field, field)) {
      // It was added as a member of a oneof, without the facts that reading it takes.
      if (entry.level != kNone || entry.values != kNone || entry.child != kNone ||
          entry.names != kNone || entry.presence != kNone) {
        refuse_path(spec, "its path contradicts another feature's.");
      }
      set_field(entry, field);
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
      FieldShape& entry = nodes[node].entries[at];
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
      }
    }
    node = nodes[node].entries[at].child;
  }
}

}  // namespace tfrfast
