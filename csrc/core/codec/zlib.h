// The machine's zlib, found by SONAME on first use. Compiling, linking and installing tfrfast need
// no zlib. The declarations below are our own; zlib's interface has been stable since version 1.2.
//
// A linked zlib-ng would be faster. On one core of an Intel Xeon, zlib-ng 2.3 inflated the contents
// of small records and of small pictures 1.1 and 2.4 times as fast as zlib 1.2.13, and ISA-L 1.3
// and 2.0 times as fast. zlib-ng compressed 3.6 and 1.8 times as fast at level 6. But Debian 12 has
// no zlib-ng, and ISA-L comes with PyPI's package `isal`. zlib-ng is used where it is the machine's
// libz.so.1. libdeflate cannot begin in the middle of a stream.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfrfast {

struct ZStream {
  const std::uint8_t* next_in = nullptr;
  unsigned avail_in = 0;
  unsigned long total_in = 0;
  std::uint8_t* next_out = nullptr;
  unsigned avail_out = 0;
  unsigned long total_out = 0;
  const char* message = nullptr;
  void* state = nullptr;
  void* allocate = nullptr;
  void* free = nullptr;
  void* opaque = nullptr;
  int data_type = 0;
  unsigned long adler = 0;
  unsigned long reserved = 0;
};

// Constants of zlib's interface.
inline constexpr int kZNoFlush = 0, kZFinish = 4, kZBlock = 5;
inline constexpr int kZOk = 0, kZStreamEnd = 1, kZDataError = -3, kZMemoryError = -4,
                     kZBufferError = -5;
// Window bits: a window of 32 KiB. Positive: ZLIB's wrapper. Negative: no wrapper. Plus 16: GZIP's
// wrapper.
inline constexpr int kZWholeWindow = 15, kZRawWindow = -kZWholeWindow;

struct Zlib {
  const char* (*version)();
  int (*inflate_init)(ZStream*, int window_bits, const char* version, int stream_bytes);
  int (*inflate)(ZStream*, int flush);
  int (*inflate_reset)(ZStream*);
  int (*inflate_prime)(ZStream*, int bits, int value);
  int (*inflate_set_dictionary)(ZStream*, const std::uint8_t*, unsigned);
  int (*inflate_end)(ZStream*);
  int (*deflate_init)(ZStream*, int level, int method, int window_bits, int memory_level,
                      int strategy, const char* version, int stream_bytes);
  int (*deflate)(ZStream*, int flush);
  int (*deflate_reset)(ZStream*);
  int (*deflate_end)(ZStream*);
  unsigned long (*crc32)(unsigned long, const std::uint8_t*, unsigned);
  unsigned long (*adler32)(unsigned long, const std::uint8_t*, unsigned);
};

// Loaded once, never unloaded. Throws Error io (ENOENT), with advice on what to install, if no
// usable zlib exists. Safe from many threads.
const Zlib& zlib();

}  // namespace tfrfast
