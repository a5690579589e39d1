#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/base/pool.h"

using namespace tfrfast;

TEST_CASE("a pooled buffer is aligned, large enough and reused at every size") {
  pool_trim();
  for (std::size_t bytes = 1; bytes < (std::size_t{16} << 20); bytes += 1 + bytes / 3) {
    CAPTURE(bytes);
    std::uint8_t* first;
    std::size_t capacity;
    {
      PooledBuffer buffer(bytes);
      REQUIRE(buffer.capacity() >= bytes);
      REQUIRE(buffer.capacity() <= std::max<std::size_t>(4096, bytes + bytes / 4 + 1));
      REQUIRE(reinterpret_cast<std::uintptr_t>(buffer.data()) % kPoolAlignment == 0);
      std::memset(buffer.data(), 1, buffer.capacity());
      first = buffer.data();
      capacity = buffer.capacity();
    }
    CHECK(pool_retained_bytes() >= capacity);
    CHECK(PooledBuffer(bytes).data() == first);
    CHECK(PooledBuffer(capacity).data() == first);
  }
  pool_trim();
  CHECK(pool_retained_bytes() == 0);
}

TEST_CASE("an empty buffer holds nothing") {
  CHECK(PooledBuffer(0).data() == nullptr);
  PooledBuffer moved_from(100);
  PooledBuffer owner(std::move(moved_from));
  CHECK(owner.capacity() >= 100);
}

TEST_CASE("the pool keeps no more than its bound") {
  pool_trim();
  {
    std::vector<PooledBuffer> many;
    for (int i = 0; i < 5; ++i) many.emplace_back(std::size_t{96} << 20);
  }
  CHECK(pool_retained_bytes() <= kPoolRetainedBytes);
  CHECK(pool_retained_bytes() > 0);
  pool_trim();
}

TEST_CASE("buffers may be given back from other threads") {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        PooledBuffer a(5000), b(70000);
        std::thread([moved = std::move(a)]() mutable { moved.data()[0] = 1; }).join();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}
