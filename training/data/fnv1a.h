// FNV-1a (Fowler, Noll, Vo): what data are recognised by. Private to training/data/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace caldera::detail {

/// Hashes words of 64 bits. No defence against people who look for two data of one hash.
class Fnv1a {
 public:
  void mix(std::uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL; }
  /// The text's bytes, eight at a time, the last filled up with zeros.
  void mix(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
      mix(word);
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace caldera::detail
