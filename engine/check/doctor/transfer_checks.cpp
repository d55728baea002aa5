// Uploads and downloads of every size at every offset, directly and through staging buffers.
#include <cstring>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

constexpr std::size_t kTransferSizes[] = {
    1, 7, 1025, 65537, (std::size_t{1} << 20) + 3, std::size_t{40} << 20};
constexpr std::size_t kOffsets[] = {0, 1, 12, 4099};
constexpr std::size_t kBehind = 64;

std::byte pattern(std::size_t i, std::size_t seed) {
  return static_cast<std::byte>(((i + seed) * 2654435761U) >> 13);
}

std::vector<std::string> there_and_back(Backend& backend, std::size_t bytes, std::size_t offset) {
  const std::size_t all = offset + bytes + kBehind;
  const std::vector<std::byte> blank(all, std::byte{0x5a});
  std::vector<std::byte> sent(bytes), back(all);
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = pattern(i, offset);
  const StoragePtr storage = backend.allocate(all);
  backend.upload(*storage, 0, blank.data(), all);
  backend.upload(*storage, offset, sent.data(), bytes);
  backend.download(*storage, 0, back.data(), all);
  std::vector<std::string> wrong;
  if (std::memcmp(back.data() + offset, sent.data(), bytes) != 0) wrong.emplace_back("other bytes came back");
  if (std::memcmp(back.data(), blank.data(), offset) != 0) wrong.emplace_back("bytes in front changed");
  if (std::memcmp(back.data() + offset + bytes, blank.data(), kBehind) != 0)
    wrong.emplace_back("bytes behind changed");
  std::vector<std::byte> part(bytes);
  backend.download(*storage, offset, part.data(), bytes);
  if (part != sent) wrong.emplace_back("a download from inside of the storage gives other bytes");
  return wrong;
}

void check_sizes(Examination& x) {
  for (std::size_t bytes : kTransferSizes) {
    x.check("transfers: " + std::to_string(bytes) + " bytes", "bytes: exact", [&] {
      std::vector<std::string> wrong;
      for (std::size_t offset : kOffsets)
        for (const std::string& line : there_and_back(x.backend(), bytes, offset))
          wrong.push_back("at byte " + std::to_string(offset) + ": " + line);
      return wrong;
    });
  }
}

}  // namespace

void check_transfers(Examination& x) {
  check_sizes(x);
  if (!x.gpu()) return x.skip("transfers by staging", "the CPU device's memory is the host's");
  if (x.backend().allocate(64)->host_data() == nullptr)
    return x.skip("transfers by staging: as an extra", "all transfers of this device are staged");
  x.on_other_backend("transfers by staging", "CALDERA_VULKAN_STAGING", "1", check_sizes);
}

}  // namespace caldera::doctor
