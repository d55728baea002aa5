#include "lm/formats/safetensors/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

/// Receives the header's JSON event by event and accepts only the one form the format allows:
///   {"name": {"dtype": S, "shape": [N...], "data_offsets": [N, N]}..., "__metadata__": {S: S...}}
/// Working on events, not on a document, means that depth and size need no separate limits, and that a
/// duplicate key (which a document silently drops) is seen.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& where) : where_(where) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::start:
        state_ = State::root;
        return true;
      case State::tensor_value:
        state_ = State::tensor;
        return true;
      case State::metadata_value:
        state_ = State::metadata;
        return true;
      default:
        fail("an object where none belongs");
    }
  }

  bool key(string_t& text) override {
    switch (state_) {
      case State::root:
        return root_key(text);
      case State::tensor:
        return tensor_key(text);
      case State::metadata:
        if (header_.metadata.contains(text))
          fail(fmt::format("duplicate metadata key '{}'", printable(text)));
        metadata_key_ = text;
        state_ = State::metadata_entry;
        return true;
      default:
        fail("a key where none belongs");
    }
  }

  bool end_object() override {
    if (state_ == State::tensor) finish_tensor();
    state_ = State::root;  // the parser itself checks what follows the root's end
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape_value)
      state_ = State::shape;
    else if (state_ == State::offsets_value)
      state_ = State::offsets;
    else
      fail("a list where none belongs");
    return true;
  }

  bool end_array() override {
    state_ = State::tensor;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail_tensor("has an extent that is too large");
      }
      if (entry_.info.shape.rank() == kMaxRank)
        fail_tensor(fmt::format("has more than {} dimensions", kMaxRank));
      entry_.info.shape.push_back(static_cast<std::int64_t>(value));
    } else if (state_ == State::offsets) {
      if (offset_count_ == 2) fail_tensor("has more than two data_offsets");
      (offset_count_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      fail_scalar("a number");
    }
    return true;
  }

  bool string(string_t& text) override {
    if (state_ == State::metadata_entry) {
      header_.metadata.emplace(std::move(metadata_key_), text);
      state_ = State::metadata;
    } else if (state_ == State::dtype_value) {
      if (!set_type(entry_.info, text)) {
        fail_tensor(
            fmt::format("has dtype '{}', which is not supported (supported: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 "
                        "F8_E8M0 I64 I32 I16 I8 U64 U32 U16 U8 BOOL)",
                        printable(text)));
      }
      state_ = State::tensor;
    } else {
      fail("a string where none belongs");
    }
    return true;
  }

  bool null() override { fail_scalar("null"); }
  bool boolean(bool) override { fail_scalar("a boolean"); }
  bool number_integer(number_integer_t) override { fail_scalar("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { fail_scalar("a number that is no integer"); }
  bool binary(binary_t&) override { fail_scalar("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(fmt::format("the JSON is malformed at byte {}", position));
  }

 private:
  enum class State {
    start,
    root,
    tensor_value,
    tensor,
    dtype_value,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    metadata_entry
  };

  bool root_key(const std::string& text) {
    if (text == "__metadata__") {
      if (has_metadata_) fail("duplicate key '__metadata__'");
      has_metadata_ = true;
      state_ = State::metadata_value;
      return true;
    }
    entry_ = SafetensorsEntry{};
    entry_.name = text;
    if (!names_.insert(text).second) fail_tensor("appears twice");
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offset_count_ = 0;
    state_ = State::tensor_value;
    return true;
  }

  bool tensor_key(const std::string& text) {
    const auto once = [&](bool& seen, State next) {
      if (seen) fail_tensor(fmt::format("has field '{}' twice", text));
      seen = true;
      state_ = next;
      return true;
    };
    if (text == "dtype") return once(has_dtype_, State::dtype_value);
    if (text == "shape") return once(has_shape_, State::shape_value);
    if (text == "data_offsets") return once(has_offsets_, State::offsets_value);
    fail_tensor(fmt::format("has an unknown field '{}'", printable(text)));
  }

  void finish_tensor() {
    if (!has_dtype_) fail_tensor("has no dtype");
    if (!has_shape_) fail_tensor("has no shape");
    if (!has_offsets_ || offset_count_ != 2) fail_tensor("lacks its two data_offsets");
    header_.entries.push_back(std::move(entry_));
  }

  [[noreturn]] void fail_scalar(const char* what) const {
    if (state_ == State::metadata_entry) fail(fmt::format("metadata values must be strings, not {}", what));
    if (state_ == State::shape || state_ == State::offsets)
      fail_tensor(fmt::format("holds {} in a list", what));
    fail(fmt::format("{} where none belongs", what));
  }
  [[noreturn]] void fail_tensor(const std::string& problem) const {
    fail(fmt::format("tensor '{}' {}", printable(entry_.name), problem));
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(fmt::format("{}: not a valid safetensors file: {}", where_, problem));
  }

  const std::string& where_;
  SafetensorsHeader header_;
  std::set<std::string, std::less<>> names_;
  State state_ = State::start;
  SafetensorsEntry entry_;
  int offset_count_ = 0;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  bool has_metadata_ = false;
  std::string metadata_key_;
};

/// Bytes of a tensor, or nothing on overflow. The product is checked factor by factor, as the reference does,
/// so that (huge, huge, 0) is refused too.
std::optional<std::uint64_t> byte_size(const SafetensorsEntry& entry) {
  std::uint64_t bytes = size_of(entry.info.dtype);
  for (const std::int64_t extent : entry.info.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return std::nullopt;
  }
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return bytes;
}

void check_layout(std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes,
                  const std::string& where) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t expected = 0;
  for (const auto& entry : entries) {
    const auto fail = [&](const std::string& problem) {
      throw FileError(fmt::format("{}: not a valid safetensors file: tensor '{}' {}", where,
                                  printable(entry.name), problem));
    };
    if (entry.end < entry.begin || entry.end > data_bytes) {
      fail(fmt::format("has data_offsets [{}, {}], outside of the file's {} bytes of data", entry.begin,
                       entry.end, data_bytes));
    }
    if (entry.begin != expected) {
      fail(fmt::format("begins at byte {} of the data where {} was expected ({})", entry.begin, expected,
                       entry.begin < expected ? "it overlaps another tensor" : "there is a hole"));
    }
    const auto bytes = byte_size(entry);
    if (!bytes) fail("has a shape whose size overflows");
    if (*bytes != entry.end - entry.begin) {
      fail(fmt::format("of shape {} and dtype {} needs {} bytes but has {}", entry.info.shape.to_string(),
                       type_name(entry.info), *bytes, entry.end - entry.begin));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    throw FileError(
        fmt::format("{}: not a valid safetensors file: its tensors end at byte {} of the data but the "
                    "file holds {} (a truncated or overlong file)",
                    where, expected, data_bytes));
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) { return type_name({dtype, {}}); }

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& where) {
  // The format demands '{' first; a JSON parser would also let blanks or a byte-order mark pass.
  if (json.empty() || json.front() != '{') {
    throw FileError(
        fmt::format("{}: not a valid safetensors file: the header does not begin with '{{'", where));
  }
  // nlohmann's lexer takes NUL for the end of the text; whatever follows would go unread.
  if (json.find('\0') != json.npos) {
    throw FileError(fmt::format("{}: not a valid safetensors file: a NUL byte in the header", where));
  }
  HeaderReader reader(where);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);  // failures throw from the reader
  auto header = reader.take();
  check_layout(header.entries, data_bytes, where);
  return header;
}

}  // namespace caldera::detail
