// Exchanges: the messages of a running plan that have begun and whose results nobody has read yet. Internal
// to scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/graph/host_exchange.h"

namespace caldera {

/// Holds those of one run. What an exchange reads is copied to the host when it begins, and its result to the
/// device when a step is about to read it; so its steps need no memory in between.
class Exchanges {
 public:
  explicit Exchanges(Backend& backend) : backend_(backend) {}

  /// Begins that of `step`, whose input `from` is there once `ticket` is, and whose result goes to `to`,
  /// buffer number `buffer` of the plan; nowhere, where that has no storage.
  void begin(const Step& step, Bindings::Slot from, Bindings::Slot to, std::int32_t buffer, Ticket ticket);
  /// Finishes those whose results are in one of these buffers.
  void finish(std::span<const std::int32_t> buffers);
  void finish_all();

 private:
  struct Open {
    std::unique_ptr<PendingExchange> pending;
    Bindings::Slot to;
    std::int32_t buffer = 0;
  };
  void finish(Open& open);

  Backend& backend_;
  std::vector<Open> open_;
};

}  // namespace caldera
