// Running out of memory, of the device's and of a limit's: an error that says how much was wanted, and a
// device that goes on.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

#include "engine/base/error.h"
#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

/// More than any machine has.
constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 50;

std::vector<std::string> works(Backend& backend) {
  const StoragePtr storage = backend.allocate(4096);
  const std::uint64_t sent = 0x123456789abcdef0;
  std::uint64_t back = 0;
  backend.upload(*storage, 4088, &sent, 8);
  backend.download(*storage, 4088, &back, 8);
  if (sent == back) return {};
  return {"memory allocated after the error does not hold what is written to it"};
}

/// What is wrong if `take` is no OutOfMemoryError that names all of `numbers`.
std::vector<std::string> refused(const char* what, std::initializer_list<std::uint64_t> numbers,
                                 const std::function<void()>& take) {
  try {
    take();
  } catch (const OutOfMemoryError& error) {
    std::vector<std::string> wrong;
    for (std::uint64_t number : numbers) {
      if (std::string(error.what()).find(std::to_string(number)) == std::string::npos)
        wrong.push_back(std::string("the error does not name ") + std::to_string(number) +
                        " bytes: " + error.what());
    }
    return wrong;
  }
  return {std::string(what) + " was given without an error"};
}

void append(std::vector<std::string>& lines, std::vector<std::string> more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::vector<std::string> run_out(Backend& backend) {
  std::vector<std::string> wrong =
      refused("more than any machine has", {kTooMuch}, [&] { backend.allocate(kTooMuch); });
  append(wrong, works(backend));
  return wrong;
}

/// x -> -(-x) through an arena of which it uses the beginning.
PlanCase plan_with_arena(Device device, std::int64_t bytes) {
  constexpr std::int64_t kElements = 1025;
  const auto negate = reference::one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
  PlanCase plan(device);
  const int in = plan.input(DType::f32, kElements);
  const int out = plan.output(DType::f32, kElements);
  const int middle = plan.arena(DType::f32, bytes / 4);
  plan.region(negate, {kElements}, {reference::view(in, {1}), reference::view(middle, {1})});
  plan.region(negate, {kElements}, {reference::view(middle, {1}), reference::view(out, {1})});
  return plan;
}

/// A tensor and a plan's arena that do not fit into a limit: refused, and work goes on; the same plan runs
/// once the limit is gone.
std::vector<std::string> run_into_a_limit(Backend& backend) {
  constexpr std::uint64_t kLeft = std::uint64_t{4} << 20;
  constexpr std::uint64_t kWanted = std::uint64_t{32} << 20;
  const std::uint64_t limit_before = backend.counters().limit_bytes;
  backend.set_memory_limit(limit_before);  // gives back what is unused
  const std::uint64_t limit = backend.counters().reserved_bytes + kLeft;
  backend.set_memory_limit(limit);
  const PlanCase large = plan_with_arena(backend.info().device, kWanted);
  std::vector<std::string> wrong;
  try {
    append(wrong, refused("a tensor over the limit", {kWanted, limit}, [&] { backend.allocate(kWanted); }));
    append(wrong, works(backend));
    append(wrong, refused("an arena over the limit", {limit}, [&] { large.run_on(backend); }));
    const PlanCase small = plan_with_arena(backend.info().device, 1025 * 4);
    append(wrong, small.compare(small.run_on(backend)).complaints);
  } catch (...) {
    backend.set_memory_limit(limit_before);
    throw;
  }
  backend.set_memory_limit(limit_before);
  append(wrong, large.compare(large.run_on(backend)).complaints);
  return wrong;
}

/// Every byte of many blocks is their own, in whatever order they come and go.
std::vector<std::string> many_blocks(Backend& backend) {
  struct Block {
    StoragePtr storage;
    std::uint32_t mark = 0;
  };
  const auto size_of_block = [](std::uint32_t i) { return std::size_t{16} + (i * 7919U) % 40000; };
  std::vector<Block> blocks(64);
  std::vector<std::string> wrong;
  const auto check = [&](const Block& block) {
    std::uint32_t first = 0, last = 0;
    backend.download(*block.storage, 0, &first, 4);
    backend.download(*block.storage, block.storage->bytes() - 4, &last, 4);
    if ((first != block.mark || last != block.mark) && wrong.size() < 3)
      wrong.push_back("block " + std::to_string(block.mark) + " was overwritten");
  };
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    Block& block = blocks[(i * 40503U >> 4) % blocks.size()];
    if (block.storage != nullptr) check(block);
    block = {backend.allocate(size_of_block(i)), i};
    backend.upload(*block.storage, 0, &i, 4);
    backend.upload(*block.storage, block.storage->bytes() - 4, &i, 4);
  }
  for (const Block& block : blocks)
    if (block.storage != nullptr) check(block);
  return wrong;
}

}  // namespace

void check_memory(Examination& x) {
  x.check("memory: more than there is", "an error that names the bytes; then work goes on",
          [&] { return run_out(x.backend()); });
  x.check("memory: more than a limit allows", "errors that name bytes and limit; then work goes on",
          [&] { return run_into_a_limit(x.backend()); });
  x.check("memory: blocks that come and go", "bytes: exact", [&] { return many_blocks(x.backend()); });
  x.check("memory: given back", "live bytes as before", [&] {
    const std::uint64_t before = x.backend().counters().live_bytes;
    { const StoragePtr block = x.backend().allocate(std::size_t{8} << 20); }
    const std::uint64_t after = x.backend().counters().live_bytes;
    std::vector<std::string> wrong;
    if (after != before)
      wrong.push_back(std::to_string(before) + " live bytes before an allocation that was given back, " +
                      std::to_string(after) + " after it");
    return wrong;
  });
}

}  // namespace caldera::doctor
