// Scratch memory of one thread: grown to the largest request, never given back while the thread lives, so
// that steady work allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace caldera::cpu {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least `bytes`, 64-byte aligned; what the last call returned is gone.
  std::byte* get(std::size_t bytes) {
    if (bytes > bytes_) grow(bytes);
    return data_;
  }

 private:
  void grow(std::size_t bytes) {
    std::free(data_);
    bytes_ = (bytes + bytes / 4 + 4095) / 4096 * 4096;
    data_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes_));
    if (data_ == nullptr) {
      bytes_ = 0;
      throw std::bad_alloc();
    }
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace caldera::cpu
