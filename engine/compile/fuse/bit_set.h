// A set of small numbers, a bit each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace caldera {

class BitSet {
 public:
  explicit BitSet(std::size_t bits = 0) : words_((bits + 63) / 64, 0) {}
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  bool test(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void add(const BitSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace caldera
