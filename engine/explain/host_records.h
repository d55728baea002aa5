// Records of the host: what its threads did for evaluations.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/tensor/device.h"

namespace caldera {

using RecordTime = std::chrono::steady_clock::time_point;

/// Bytes brought from one device to another, by a thread of the host.
struct CopyRecord {
  Device from, to;
  std::size_t bytes = 0;
  std::uint32_t thread = 0;
  RecordTime begin, end;
};

/// A stretch of time on a thread of the host.
struct HostSpan {
  std::string_view name;
  std::uint32_t thread = 0;
  RecordTime begin, end;
};

}  // namespace caldera
