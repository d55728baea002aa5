#include "engine/runtime/device_copy.h"

#include <algorithm>
#include <vector>

#include "engine/runtime/profile_hooks.h"

namespace caldera {
namespace {

/// The host may reach a GPU's memory too, but the GPU's backend knows the better way.
bool is_on_host(Storage& storage) {
  return storage.device().kind == DeviceKind::cpu && storage.host_data() != nullptr;
}

}  // namespace

void run_copy(const DeviceCopy& copy) {
  if (copy.bytes == 0) return;
  const CopyRecorder recorder(copy.from->device(), copy.to->device(), copy.bytes);
  if (is_on_host(*copy.from)) {
    copy.to_backend->upload(*copy.to, 0, copy.from->host_data() + copy.from_offset, copy.bytes);
    return;
  }
  if (is_on_host(*copy.to)) {
    copy.from_backend->download(*copy.from, copy.from_offset, copy.to->host_data(), copy.bytes);
    return;
  }
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  std::vector<std::byte> piece(std::min(copy.bytes, kPiece));
  for (std::size_t done = 0; done < copy.bytes; done += piece.size()) {
    const std::size_t count = std::min(piece.size(), copy.bytes - done);
    copy.from_backend->download(*copy.from, copy.from_offset + done, piece.data(), count);
    copy.to_backend->upload(*copy.to, done, piece.data(), count);
  }
}

}  // namespace caldera
