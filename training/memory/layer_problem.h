// LayerProblem: which of its options each layer of a model takes, so that no moment of a training step takes
// more than a limit. A problem of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace caldera {

/// Names one thing that a layer may do between its forward and its backward pass.
struct LayerOption {
  std::int64_t kept_bytes = 0;     ///< that wait for its backward pass
  std::int64_t working_bytes = 0;  ///< in its backward pass, besides what layers before it keep
  double seconds = 0;              ///< of what is computed again
};

/// Returns the number of the option that each layer takes: of the fewest seconds such that for each layer,
/// its working bytes and the kept bytes of the layers before it are at most `bytes`. Nothing where there is
/// none. Dynamic programming over pairs of bytes and seconds of which none beats another in both; exact but
/// for a 4096th of `bytes` by which a layer's kept bytes are rounded up.
std::optional<std::vector<std::size_t>> cheapest_options(std::span<const std::vector<LayerOption>> layers,
                                                         std::int64_t bytes);

/// Returns the options of the lowest peak, whatever they cost; every layer must have one.
std::vector<std::size_t> smallest_options(std::span<const std::vector<LayerOption>> layers);

}  // namespace caldera
