#include "training/checkpoints/data_fingerprint.h"

#include <fmt/format.h>

#include <cstdint>

namespace caldera {
namespace {

/// FNV-1a (Fowler, Noll, Vo) over words of 64 bits.
class Fnv1a {
 public:
  void mix(std::uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL; }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::string data_fingerprint(const TokenDataset& data) {
  Fnv1a hash;
  hash.mix(static_cast<std::uint64_t>(data.counted()));
  hash.mix(static_cast<std::uint64_t>(data.epoch_size()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    for (std::int64_t which = 0; which < data.sequences_per_example(); ++which) {
      const auto tokens = data.tokens(i, which);
      hash.mix(tokens.size());
      for (const std::int32_t token : tokens) hash.mix(static_cast<std::uint32_t>(token));
    }
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace caldera
