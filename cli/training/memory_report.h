// Says what becomes of the values of a training step under a limit of memory, for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "training/trainer/memory_curve.h"

namespace caldera::cli {

/// {"peak_bytes","limit_bytes","kept","recomputed","offloaded","forced","added_time"}: each list has
/// {"layer","value","bytes","reason"} for what the backward pass reads of a checkpointed layer. added_time is
/// the share of the layers' forward pass that runs again. Nothing is offloaded: "offloaded" is empty.
nlohmann::ordered_json describe_memory(const MemoryChoice& choice);

/// Lines for people: the choice, and the values of checkpointed layers, equal ones together, with the reason.
std::string memory_text(const MemoryChoice& choice);

/// A line a limit: the limit, the predicted peak, the share of the forward pass that runs again.
std::string curve_text(std::span<const MemoryRow> rows);
nlohmann::ordered_json describe_curve(std::span<const MemoryRow> rows);
/// Draws predicted peak and added time over the limit, an SVG by itself.
std::string curve_svg(std::span<const MemoryRow> rows);

}  // namespace caldera::cli
