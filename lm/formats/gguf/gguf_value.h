// GgufValue: one value of a GGUF file's metadata. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace caldera::detail {

/// The value types of the format, by its numbers.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, list, u64, i64, f64 };

inline constexpr std::uint32_t kGgufTypeCount = 13;

/// Bytes of a value of a fixed size; 0 for strings and lists.
constexpr std::size_t size_of(GgufType type) {
  constexpr std::size_t kSizes[kGgufTypeCount]{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<std::uint32_t>(type)];
}
std::string_view name(GgufType type);

/// A value that is in a mapped file, which must outlive it. The file's reader has checked it: every length
/// in it fits, and its strings and lists are whole. Getters give nothing for a value of another kind.
class GgufValue {
 public:
  GgufValue() = default;
  GgufValue(GgufType type, std::span<const std::byte> bytes) : type_(type), bytes_(bytes) {}
  GgufValue(GgufType element, std::uint64_t count, std::span<const std::byte> bytes)
      : type_(GgufType::list), element_(element), count_(count), bytes_(bytes) {}

  GgufType type() const { return type_; }
  /// Returns the bytes that the file holds: of a string its characters, of a list its elements.
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_list() const { return type_ == GgufType::list; }
  /// Returns the type of a list's elements.
  GgufType element_type() const { return element_; }
  std::uint64_t count() const { return count_; }

  /// Returns the value of any integer type, where std::int64_t holds it.
  std::optional<std::int64_t> integer() const;
  /// Returns the value of a floating or integer type. An f32 gives the double that is its shortest decimal: a
  /// configuration that said 1e-5 says so again.
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> string() const;

  /// The elements of a list; nothing where one is of another kind.
  std::optional<std::vector<std::int64_t>> integers() const;
  std::optional<std::vector<float>> floats() const;
  std::optional<std::vector<std::string_view>> strings() const;
  std::optional<std::vector<bool>> booleans() const;

 private:
  /// Element `i` of a list of values of a fixed size.
  GgufValue element(std::uint64_t i) const;

  GgufType type_ = GgufType::u8;
  GgufType element_ = GgufType::u8;
  std::uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace caldera::detail
