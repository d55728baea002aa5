#include "lm/formats/folders/mxfp4_blocks.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/formats/weights/packed_weight.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kCodeBytes = 16;  // bytes of a block's codes

std::vector<std::byte> in_ggml_order(std::span<const std::byte> codes, std::span<const std::byte> scales) {
  std::vector<std::byte> blocks(scales.size() * (kCodeBytes + 1));
  for (std::size_t b = 0; b < scales.size(); ++b) {
    const std::byte* from = codes.data() + b * kCodeBytes;
    std::byte* to = blocks.data() + b * (kCodeBytes + 1);
    *to++ = scales[b];
    const auto element = [&](std::size_t i) {
      return i % 2 == 0 ? from[i / 2] & std::byte{15} : from[i / 2] >> 4;
    };
    for (std::size_t j = 0; j < kCodeBytes; ++j) to[j] = element(j) | element(j + kCodeBytes) << 4;
  }
  return blocks;
}

}  // namespace

StoredWeightPtr mxfp4_weight(const Shape& shape, const StoredTensor& codes, const StoredTensor& scales) {
  if (codes.bytes.size() != scales.bytes.size() * kCodeBytes)
    throw ShapeError(
        fmt::format("has {} bytes of codes for {} scales", codes.bytes.size(), scales.bytes.size()));
  std::vector<PackedPart> parts;
  parts.push_back({DType::u8, {}, [=] { return in_ggml_order(codes.bytes, scales.bytes); }});
  return std::make_unique<PackedWeight>(shape, QuantizedLayout{QuantizedFormat::mxfp4, 0, 1},
                                        std::move(parts));
}

}  // namespace caldera::detail
