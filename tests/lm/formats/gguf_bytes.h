// Builds GGUF files byte by byte, for tests: what the format's description says, and what it forbids.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace caldera::testing {

class GgufBytes {
 public:
  template <class T>
  GgufBytes& number(T value) {
    const auto* raw = reinterpret_cast<const char*>(&value);
    text_.append(raw, sizeof(T));
    return *this;
  }
  GgufBytes& u32(std::uint32_t v) { return number(v); }
  GgufBytes& u64(std::uint64_t v) { return number(v); }
  GgufBytes& string(const std::string& v) {
    u64(v.size());
    text_ += v;
    return *this;
  }
  GgufBytes& raw(const std::string& v) {
    text_ += v;
    return *this;
  }
  GgufBytes& front(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    return raw("GGUF").u32(version).u64(tensors).u64(keys);
  }
  GgufBytes& key(const std::string& name, std::uint32_t type) { return string(name).u32(type); }
  /// `extents` fastest first, as the file has them.
  GgufBytes& tensor(const std::string& name, const std::vector<std::uint64_t>& extents, std::uint32_t type,
                    std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t e : extents) u64(e);
    return u32(type).u64(offset);
  }
  GgufBytes& pad(std::size_t alignment = 32) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

}  // namespace caldera::testing
