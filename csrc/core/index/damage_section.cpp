#include "core/index/damage_section.h"

#include "core/index/index_bytes.h"

namespace tfrfast {

// Damage has a list of its own, because gaps in the offsets would slow down every lookup.
std::vector<DamageEntry> damage_entries_of(std::span<const Damage> damage) {
  std::vector<DamageEntry> entries;
  for (const Damage& each : damage) {
    entries.push_back({each.begin, each.end, each.records_before, each.records_lost,
                       static_cast<std::uint64_t>(each.kind)});
  }
  return entries;
}

std::vector<Damage> load_damage(const std::string& path, std::span<const DamageEntry> entries) {
  std::vector<Damage> damage;
  for (const DamageEntry& each : entries) {
    if (each.kind < 1 || each.kind > static_cast<std::uint64_t>(DamageKind::bad_stream) ||
        each.begin > each.end) {
      refuse_index(path, "its list of damage makes no sense.");
    }
    damage.push_back({static_cast<DamageKind>(each.kind), each.begin, each.end, each.records_before,
                      each.records_lost});
  }
  return damage;
}

}  // namespace tfrfast
