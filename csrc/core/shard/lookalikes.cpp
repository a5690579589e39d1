#include "core/shard/lookalikes.h"

#include <algorithm>
#include <string_view>

#include "core/base/utf8.h"

namespace tfrfast {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  const char* name;
  std::size_t at = 0;
};

constexpr Signature kSignatures[] = {
    {"version https://git-lfs.github.com/"sv, "a Git LFS pointer: `git lfs pull` fetches the file"},
    {"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"sv, "ArrayRecord"},
    {"PAR1"sv, "Parquet"},
    {"ARROW1"sv, "Arrow"},
    {"FEA1"sv, "Feather"},
    {"\x93NUMPY"sv, "NumPy"},
    {"\x89HDF\r\n"sv, "HDF5"},
    {"Obj\x01"sv, "Avro"},
    {"ORC"sv, "ORC"},
    {"SQLite format 3"sv, "SQLite"},
    {"PK\x03\x04"sv, "ZIP"},
    {"ustar"sv, "tar", 257},
    {"\x1f\x8b"sv, "GZIP"},
    {"\x28\xb5\x2f\xfd"sv, "Zstandard"},
    {"\xfd"
     "7zXZ"sv,
     "xz"},
    {"BZh"sv, "bzip2"},
    {"\x89PNG"sv, "PNG"},
    {"\xff\xd8\xff"sv, "JPEG"},
    {"%PDF"sv, "PDF"},
    {"\x7f"
     "ELF"sv,
     "ELF"},
    {"<!DOCTYPE"sv, "HTML"},
    {"<html"sv, "HTML"},
};

// The last bytes of LevelDB's tables.
constexpr std::string_view kTableEnd = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv;

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_text(std::span<const std::uint8_t> head) {
  // Fewer bytes may be the length of a record, cut short. Longer lengths have zeros.
  if (head.size() <= sizeof(std::uint32_t)) return false;
  // The last character may be cut.
  for (std::size_t cut = 0; cut < 4 && cut < head.size(); ++cut) {
    if (!is_utf8(head.first(head.size() - cut))) continue;
    return std::none_of(head.begin(), head.end(), [](std::uint8_t byte) {
      return (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    });
  }
  return false;
}

}  // namespace

std::string look_alike(std::span<const std::uint8_t> head, std::span<const std::uint8_t> tail) {
  const std::string_view text = text_of(head);
  for (const Signature& mark : kSignatures) {
    if (text.size() > mark.at && text.substr(mark.at).starts_with(mark.bytes)) return mark.name;
  }
  if (text_of(tail).ends_with(kTableEnd)) return "the index of a TensorFlow checkpoint";
  if (!is_text(head)) return "";
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.starts_with('{') || line.starts_with('[')) return "JSON";
  const std::string_view rest = text.substr(std::min(line.size() + 1, text.size()));
  const std::string_view second = rest.substr(0, rest.find('\n'));
  for (const char separator : {',', '\t', ';'}) {
    const auto columns = std::count(line.begin(), line.end(), separator);
    if (columns > 0 && columns == std::count(second.begin(), second.end(), separator)) return "CSV";
  }
  return "text";
}

}  // namespace tfrfast
