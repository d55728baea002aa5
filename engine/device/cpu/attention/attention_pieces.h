// AttentionPieces: the working memory of a thread that computes attention, handed out piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera::cpu {

/// Hands memory out piece by piece; without memory it only counts.
class AttentionPieces {
 public:
  explicit AttentionPieces(std::byte* memory) : memory_(memory) {}
  std::byte* take(std::size_t bytes) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    // Odd multiples of the cache line keep pieces of a power of two from sharing cache sets.
    used_ += (bytes + 63) / 64 * 64 + 64;
    return piece;
  }
  float* floats(std::int64_t count) {
    return reinterpret_cast<float*>(take(static_cast<std::size_t>(count) * sizeof(float)));
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

}  // namespace caldera::cpu
