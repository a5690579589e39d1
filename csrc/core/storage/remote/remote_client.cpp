#include "core/storage/remote/remote_client.h"

#include <atomic>
#include <exception>
#include <string>

#include "core/storage/cache/cache_writer.h"
#include "core/storage/remote/listed_objects.h"
#include "core/storage/remote/remote_exchange.h"

namespace tfrfast {
namespace {

constexpr int kLastWritesMs = 5'000;

RemoteExchange& exchange() {
  return RemoteExchange::instance();
}

ErrorKind kind_of_code(std::int32_t code) noexcept {
  return code == 1 ? ErrorKind::stale_index : code == 2 ? ErrorKind::invalid : ErrorKind::io;
}

// Returns false if `action` throws, which happens only if memory runs out.
template <class Action>
bool carefully(const Action& action) noexcept {
  try {
    action();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

FileFacts facts_from(const ClientFacts& said) noexcept {
  FileFacts facts;
  facts.bytes = said.bytes;
  facts.mtime_ns = said.mtime_ns;
  facts.version = {{said.version[0], said.version[1], said.version[2]}};
  facts.version_lasts = said.version_lasts != 0;
  return facts;
}

std::int32_t begin() noexcept {
  std::int32_t descriptor = -1;
  carefully([&] { descriptor = exchange().begin_serving(); });
  return descriptor;
}

void end(const char* why) noexcept {
  carefully([&] { exchange().end_serving(why); });
  // The program may be about to end. Do not wait twice for a slow disk.
  static std::atomic<bool> has_waited{false};
  if (!has_waited.exchange(true)) CacheWriter::instance().finish(kLastWritesMs);
}

void acknowledge() noexcept {
  exchange().acknowledge();
}

// The same for what answers a request, which fails then: somebody waits for it.
template <class Action>
void answer(std::uint64_t number, const Action& action) noexcept {
  if (!carefully(action)) exchange().fail_for_memory(number);
}

std::int32_t take(ClientRequest* out) noexcept {
  RemoteExchange::TakenRequest taken;
  if (!carefully([&] { taken = exchange().take(); })) exchange().fail_next_for_memory();
  if (taken.request == nullptr) return 0;
  const RemoteRequest& request = *taken.request;
  const bool is_read = request.kind == RemoteRequest::Kind::read;
  *out = {taken.number,
          request.offset,
          is_read ? request.bytes : 0,
          request.object->url.c_str(),
          request.object->access.c_str(),
          request.object->version.c_str()};
  return 1;
}

std::uint64_t take_abandoned() noexcept {
  return exchange().take_abandoned().value_or(0);
}

void receive(std::uint64_t number, std::uint64_t at, const void* bytes,
             std::uint64_t count) noexcept {
  answer(number, [&] { exchange().receive(number, at, bytes, count); });
}

void finish_facts(std::uint64_t number, const ClientFacts* facts, const char* version) noexcept {
  answer(number, [&] { exchange().finish_examination(number, facts_from(*facts), version); });
}

void fail(std::uint64_t number, std::int32_t code, std::int32_t system_error,
          const char* message) noexcept {
  answer(number,
         [&] { exchange().fail(number, Error(kind_of_code(code), message, {}, system_error)); });
}

void start_with(ClientStarter starter) noexcept {
  carefully([&] { exchange().start_with(starter); });
}

void expect(const char* url, const char* access, const ClientFacts* facts,
            const char* version) noexcept {
  carefully([&] { expect_object(url, access, {facts_from(*facts), version}); });
}

void forget_listed() noexcept {
  carefully(forget_listed_objects);
}

constexpr ClientTable kTable = {
    begin,        end,  acknowledge, take,   take_abandoned, receive,
    finish_facts, fail, start_with,  expect, forget_listed,
};

}  // namespace

const ClientTable& client_table() noexcept {
  return kTable;
}

}  // namespace tfrfast
