#include "engine/device/control/exchanges.h"

#include <algorithm>

namespace caldera {

void Exchanges::begin(const Step& step, Bindings::Slot from, Bindings::Slot to, std::int32_t buffer,
                      Ticket ticket) {
  const auto& control = step.as<ControlStep>();
  const auto bytes = static_cast<std::size_t>(control.inputs[0].bytes());
  HostExchange::Begun begun =
      control.exchange->begin(bytes, static_cast<std::size_t>(control.results[0].bytes()));
  if (bytes > 0) {
    backend_.wait(ticket);
    backend_.download(*from.storage, static_cast<std::size_t>(from.byte_offset), begun.input.data(), bytes);
  }
  control.exchange->start(*begun.pending);
  open_.push_back({std::move(begun.pending), to, buffer});
}

void Exchanges::finish(Open& open) {
  const std::span<const std::byte> result = open.pending->finish();
  if (!result.empty() && open.to.storage != nullptr)
    backend_.upload(*open.to.storage, static_cast<std::size_t>(open.to.byte_offset), result.data(),
                    result.size());
}

void Exchanges::finish(std::span<const std::int32_t> buffers) {
  std::erase_if(open_, [&](Open& open) {
    if (std::ranges::find(buffers, open.buffer) == buffers.end()) return false;
    finish(open);
    return true;
  });
}

void Exchanges::finish_all() {
  for (Open& open : open_) finish(open);
  open_.clear();
}

}  // namespace caldera
