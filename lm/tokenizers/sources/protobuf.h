// Reads the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/). Private to
// lm/tokenizers/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caldera::detail {

/// The fields of one message, in the order of the file.
class ProtobufReader {
 public:
  /// Keeps references to both.
  ProtobufReader(std::string_view message, const std::string& where) : rest_(message), where_(where) {}

  /// A field: its number, and its value in the form that its type has on the wire.
  struct Field {
    std::uint32_t number = 0;
    std::uint64_t integer = 0;  ///< of a varint, or the bits of a fixed number
    std::string_view bytes;     ///< of a string or a message within
    bool is_bytes = false;
  };

  /// Reads the next field; false at the end. Throws FileError for what is malformed.
  bool next(Field& field);

  static float to_float(const Field& field);

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  [[noreturn]] void fail() const;

  std::string_view rest_;
  const std::string& where_;
};

}  // namespace caldera::detail
