// A device without memory or kernels, for tests of what drives devices: they say what submit and wait do.
#pragma once

#include <memory>
#include <utility>

#include "engine/device/backend.h"

namespace caldera::testing {

class IdleBackend : public Backend {
 public:
  const DeviceInfo& info() const override { return info_; }
  bool supports(DType) const override { return true; }
  void set_memory_limit(std::uint64_t) override {}
  StoragePtr allocate(std::size_t) override { return nullptr; }
  void upload(Storage&, std::size_t, const void*, std::size_t) override {}
  void download(Storage&, std::size_t, void*, std::size_t) override {}
  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    return std::make_unique<Executable>(std::move(plan));
  }
  DeviceCounters counters() const override { return {}; }

 private:
  DeviceInfo info_;
};

}  // namespace caldera::testing
