#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/base/memory.h"
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

TEST_CASE("sizes that nobody wants any more make space for those that are wanted") {
  pool_trim();
  {
    std::vector<PooledBuffer> many;
    for (int i = 0; i < 40; ++i) many.emplace_back(std::size_t{8} << 20);
  }
  CHECK(pool_retained_bytes() > kPoolRetainedBytes - (std::size_t{8} << 20));
  for (const std::size_t bytes : {std::size_t{3} << 20, std::size_t{50} << 20}) {
    CAPTURE(bytes);
    for (int i = 0; i < 65; ++i) PooledBuffer{bytes};
    const std::uint8_t* const first = PooledBuffer(bytes).data();
    CHECK(PooledBuffer(bytes).data() == first);
  }
  CHECK(pool_retained_bytes() <= kPoolRetainedBytes);
  pool_trim();
}

TEST_CASE("large batches that come again find their memory") {
  pool_trim();
  constexpr std::size_t kBytes = kPoolRetainedBytes + (std::size_t{44} << 20);
  if (max_memory_bytes() / 8 < 2 * kBytes) return;
  { const PooledBuffer once(kBytes); }
  CHECK(pool_retained_bytes() == 0);  // the size may not be needed again
  const std::uint8_t* again;
  {
    const PooledBuffer buffer(kBytes);
    again = buffer.data();
  }
  { const PooledBuffer small(5000); }
  CHECK(pool_retained_bytes() >= kBytes);
  CHECK(PooledBuffer(kBytes).data() == again);
  // While one batch is used, the next one is read.
  PooledBuffer batch(kBytes), next(kBytes);
  const std::uint8_t* const two[] = {batch.data(), next.data()};
  for (int round = 0; round < 4; ++round) {
    batch = std::move(next);
    next = PooledBuffer();
    { const PooledBuffer small(5000); }
    next = PooledBuffer(kBytes);
    CHECK((next.data() == two[0] || next.data() == two[1]));
  }
  batch = PooledBuffer();
  next = PooledBuffer();
  CHECK(pool_retained_bytes() < 2 * kBytes);  // no buffers in use would justify more
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
