#include "training/report/event_file.h"

#include <array>
#include <bit>
#include <cstddef>

namespace caldera::detail {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kReversedPolynomial : 0U);
    table[i] = crc;
  }
  return table;
}

/// The bytes of a number, the lowest first.
template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xFFU);
  return bytes;
}

/// So that a checksum of bytes with checksums in them is not weak.
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian((std::rotl(crc, 17)) + 0xa282ead8U);
}

std::string record(const std::string& event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + masked_crc(length) + event + masked_crc(event);
}

// ---- Protobuf: fields of a message, one behind the other
// ------------------------------------------------------

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80U; number >>= 7U) bytes += static_cast<char>((number & 0x7FU) | 0x80U);
  return bytes + static_cast<char>(number);
}
std::string key(std::uint32_t field, WireType type) {
  return varint((std::uint64_t{field} << 3U) | static_cast<std::uint64_t>(type));
}
std::string integer_field(std::uint32_t field, std::int64_t value) {
  return key(field, WireType::varint) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(std::uint32_t field, double value) {
  return key(field, WireType::fixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(std::uint32_t field, float value) {
  return key(field, WireType::fixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string bytes_field(std::uint32_t field, std::string_view value) {
  return key(field, WireType::bytes) + varint(value.size()) + std::string(value);
}

// Fields of Event, of SessionLog, and of Summary and its values.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr std::uint32_t kStatus = 1;
constexpr std::int64_t kStart = 1;
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return crc ^ 0xffffffffU;
}

std::string first_event(double wall_time) {
  return record(double_field(kWallTime, wall_time) + bytes_field(kFileVersion, "brain.Event:2"));
}

std::string restart_event(double wall_time, std::int64_t step) {
  // From the next step on.
  return record(double_field(kWallTime, wall_time) + integer_field(kStep, step + 1) +
                bytes_field(kSessionLog, integer_field(kStatus, kStart)));
}

std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary +=
        bytes_field(kValue, bytes_field(kTag, tag) + float_field(kSimpleValue, static_cast<float>(value)));
  return record(double_field(kWallTime, wall_time) + integer_field(kStep, step) +
                bytes_field(kSummary, summary));
}

}  // namespace caldera::detail
