// BlockCode: tensors kept in 8 bits, as the moments of 8-bit optimisers (Dettmers et al. 2022, "8-bit
// Optimizers via Block-wise Quantization"). Private to training/optim/.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::detail {

/// A tensor as 8-bit codes: element = map[code] * absmax of its block of 256.
struct CodedTensor {
  LazyTensor codes;   ///< u8 (blocks, 256), row-major, the last block filled up with zeros
  LazyTensor absmax;  ///< f32 (blocks, 1)
};

/// Returns the dynamic map of the paper's section 2.1, as bitsandbytes makes it: 256 numbers in [-1, 1] (or,
/// unsigned, in [0, 1]), ascending. They are dense around powers of ten down to 1e-7, so that small elements
/// of a block keep a relative precision of a few per cent.
std::vector<float> dynamic_map(bool is_signed);

/// Codes tensors by one of the two maps. Rounds to the nearest number of the map, block by block.
class BlockCode {
 public:
  static constexpr std::int64_t kBlock = 256;

  BlockCode(bool is_signed, Device device);

  static std::int64_t blocks(const LazyTensor& tensor) { return (tensor.numel() + kBlock - 1) / kBlock; }

  /// Lazily, as is decode(). `x` is f32, of any shape but an empty one.
  CodedTensor encode(const LazyTensor& x) const;
  LazyTensor decode(const CodedTensor& coded, const Shape& shape) const;

 private:
  LazyTensor map_;         // f32 (256)
  LazyTensor boundaries_;  // f32 (255): the middles between neighbours
};

}  // namespace caldera::detail
