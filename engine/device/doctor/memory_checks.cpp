// Running out of memory: an error that says how much was wanted, and a device that goes on.
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/device/doctor/families.h"
#include "engine/tensor/error.h"

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

std::vector<std::string> run_out(Backend& backend) {
  try {
    backend.allocate(kTooMuch);
  } catch (const Error& error) {
    std::vector<std::string> wrong = works(backend);
    if (std::string(error.what()).find(std::to_string(kTooMuch)) == std::string::npos)
      wrong.push_back(std::string("the error does not say how many bytes were wanted: ") + error.what());
    return wrong;
  }
  return {std::to_string(kTooMuch) + " bytes were given without an error"};
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
