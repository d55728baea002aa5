// TensorBoard's event files: what `tensorboard --logdir` reads. Each record is a length, a checksum of it, an
// Event in protobuf's encoding and its checksum (tensorflow/core/lib/io/record_writer.h and
// tensorflow/core/util/event.proto). Private to training/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caldera::detail {

/// CRC-32C (Castagnoli), as iSCSI has it.
std::uint32_t crc32c(std::string_view bytes);

/// The record that a file begins with. `wall_time` is in seconds since 1970.
std::string first_event(double wall_time);
/// Says that a run goes on after `step`: what an earlier file has of later steps is dropped.
std::string restart_event(double wall_time, std::int64_t step);
/// Scalars of a step, by their tags ("train/loss").
std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace caldera::detail
