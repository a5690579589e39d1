#include "core/codec/zlib.h"

#include <cerrno>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/codec/shared_library.h"

namespace tfrfast {
namespace {

std::optional<Zlib> load_zlib() {
  void* library = find_library({"libz.so.1", "libz.so", "libz.1.dylib", "libz.dylib"});
  if (library == nullptr) return {};
  Zlib found;
  const bool complete =
      find_function(library, "zlibVersion", found.version) &&
      find_function(library, "inflateInit2_", found.inflate_init) &&
      find_function(library, "inflate", found.inflate) &&
      find_function(library, "inflateReset", found.inflate_reset) &&
      find_function(library, "inflatePrime", found.inflate_prime) &&
      find_function(library, "inflateSetDictionary", found.inflate_set_dictionary) &&
      find_function(library, "inflateEnd", found.inflate_end) &&
      find_function(library, "deflateInit2_", found.deflate_init) &&
      find_function(library, "deflate", found.deflate) &&
      find_function(library, "deflateReset", found.deflate_reset) &&
      find_function(library, "deflateEnd", found.deflate_end) &&
      find_function(library, "crc32", found.crc32) &&
      find_function(library, "adler32", found.adler32);
  if (!complete || found.version()[0] != '1') return {};
  return found;
}

}  // namespace

const Zlib& zlib() {
  static const std::optional<Zlib> loaded = load_zlib();
  if (!loaded) {
    throw Error(ErrorKind::io,
                "Compressed shards need zlib, and no usable libz.so.1 is on this machine. Install "
                "it: `apt-get install zlib1g`, `dnf install zlib` or `conda install libzlib`.",
                {}, ENOENT);
  }
  return *loaded;
}

}  // namespace tfrfast
