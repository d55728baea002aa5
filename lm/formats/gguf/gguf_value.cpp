#include "lm/formats/gguf/gguf_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <string>

namespace caldera::detail {
namespace {

template <class T>
T read(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));  // at any address
  return value;
}

/// The double that the shortest decimal of `value` names.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double number = value;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// `get` of every element of a list.
template <class T, class Get>
std::optional<std::vector<T>> collect(std::uint64_t count, const Get& get) {
  std::vector<T> out;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto value = get(i);
    if (!value) return std::nullopt;
    out.push_back(static_cast<T>(*value));
  }
  return out;
}

}  // namespace

std::string_view name(GgufType type) {
  constexpr std::string_view kNames[kGgufTypeCount]{"u8",   "i8",     "u16",  "i16", "u32", "i32", "f32",
                                                    "bool", "string", "list", "u64", "i64", "f64"};
  return kNames[static_cast<std::uint32_t>(type)];
}

std::optional<std::int64_t> GgufValue::integer() const {
  switch (type_) {
    case GgufType::u8:
      return read<std::uint8_t>(bytes_);
    case GgufType::i8:
      return read<std::int8_t>(bytes_);
    case GgufType::u16:
      return read<std::uint16_t>(bytes_);
    case GgufType::i16:
      return read<std::int16_t>(bytes_);
    case GgufType::u32:
      return read<std::uint32_t>(bytes_);
    case GgufType::i32:
      return read<std::int32_t>(bytes_);
    case GgufType::i64:
      return read<std::int64_t>(bytes_);
    case GgufType::u64: {
      const auto value = read<std::uint64_t>(bytes_);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::number() const {
  if (type_ == GgufType::f32) return shortest(read<float>(bytes_));
  if (type_ == GgufType::f64) return read<double>(bytes_);
  const auto whole = integer();
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  if (type_ != GgufType::boolean) return std::nullopt;
  return read<std::uint8_t>(bytes_) != 0;
}

std::optional<std::string_view> GgufValue::string() const {
  if (type_ != GgufType::string) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
}

GgufValue GgufValue::element(std::uint64_t i) const {
  const std::size_t size = size_of(element_);
  return {element_, bytes_.subspan(i * size, size)};
}

std::optional<std::vector<std::int64_t>> GgufValue::integers() const {
  if (!is_list() || size_of(element_) == 0) return std::nullopt;
  return collect<std::int64_t>(count_, [&](std::uint64_t i) { return element(i).integer(); });
}

std::optional<std::vector<float>> GgufValue::floats() const {
  if (!is_list() || element_ != GgufType::f32) return std::nullopt;
  return collect<float>(count_, [&](std::uint64_t i) {
    return std::optional(read<float>(bytes_.subspan(i * sizeof(float), sizeof(float))));
  });
}

std::optional<std::vector<bool>> GgufValue::booleans() const {
  if (!is_list() || element_ != GgufType::boolean) return std::nullopt;
  return collect<bool>(count_, [&](std::uint64_t i) { return element(i).boolean(); });
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  if (!is_list() || element_ != GgufType::string) return std::nullopt;
  std::vector<std::string_view> out;
  out.reserve(count_);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const auto length = read<std::uint64_t>(bytes_.subspan(at, sizeof(std::uint64_t)));
    at += sizeof(std::uint64_t);
    out.emplace_back(reinterpret_cast<const char*>(bytes_.data()) + at, length);
    at += length;
  }
  return out;
}

}  // namespace caldera::detail
