#include "lm/tokenizers/sources/protobuf.h"

#include <fmt/format.h>

#include <bit>

#include "engine/base/error.h"

namespace caldera::detail {

void ProtobufReader::fail() const {
  throw FileError(fmt::format("{}: is cut short, or no SentencePiece model", where_));
}

std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail();
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail();
}

std::uint64_t ProtobufReader::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) fail();
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[i]);
  rest_.remove_prefix(bytes);
  return value;
}

bool ProtobufReader::next(Field& field) {
  if (rest_.empty()) return false;
  const std::uint64_t tag = varint();
  if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX) fail();
  field = {static_cast<std::uint32_t>(tag >> 3), 0, {}, false};
  switch (tag & 7) {
    case 0:
      field.integer = varint();
      return true;
    case 1:
      field.integer = fixed(8);
      return true;
    case 2: {
      const std::uint64_t size = varint();
      if (size > rest_.size()) fail();
      field.bytes = rest_.substr(0, static_cast<std::size_t>(size));
      field.is_bytes = true;
      rest_.remove_prefix(static_cast<std::size_t>(size));
      return true;
    }
    case 5:
      field.integer = fixed(4);
      return true;
    default:
      fail();  // groups are gone from the format
  }
}

float ProtobufReader::to_float(const Field& field) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.integer));
}

}  // namespace caldera::detail
