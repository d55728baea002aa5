// The header of a GGUF file. Every number in it is the word of a stranger.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {
namespace {

constexpr std::uint32_t kFileMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kMaxAxes = 4;             // GGML_MAX_DIMS
constexpr std::uint64_t kMaxName = 65535;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1 << 20;
// Lists of lists: no file of today has any, the format allows them.
constexpr int kMaxDepth = 4;
// What the shortest entry takes: bounds how many there can be.
constexpr std::uint64_t kLeastKeyBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  GgufHeader parse() {
    const auto [keys, tensors] = read_counts();
    header_.metadata.reserve(keys);
    for (std::uint64_t i = 0; i < keys; ++i) read_key();
    header_.tensors.reserve(tensors);
    offsets_.reserve(tensors);
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    return std::move(header_);
  }

 private:
  struct Counts {
    std::uint64_t keys, tensors;
  };

  Counts read_counts() {
    if (file_.size() < 4 || number<std::uint32_t>("the magic") != kFileMagic)
      fail("it does not begin with \"GGUF\"");
    const auto version = number<std::uint32_t>("the version");
    if ((version & 0xFFFF) == 0 && version != 0) fail("it is big-endian, which is not supported");
    if (version != 2 && version != 3)
      fail(fmt::format("it has version {}, which is not supported (supported: 2, 3)", version));
    const auto tensors = number<std::uint64_t>("the number of tensors");
    const auto keys = number<std::uint64_t>("the number of keys");
    if (keys > left() / kLeastKeyBytes) fail(fmt::format("{} keys do not fit the file", keys));
    if (tensors > left() / kLeastTensorBytes) fail(fmt::format("{} tensors do not fit the file", tensors));
    return {keys, tensors};
  }

  void read_key() {
    const std::string key(string("a key", kMaxName));
    what_ = fmt::format("key '{}'", printable(key));
    if (!keys_.insert(key).second) fail(what_ + " appears twice");
    const auto type = value_type();
    GgufValue value = type == GgufType::list ? list(0) : scalar(type);
    if (key == "general.alignment") {
      const auto alignment = value.integer();
      if (!alignment || *alignment < 1 || !std::has_single_bit(static_cast<std::uint64_t>(*alignment)) ||
          static_cast<std::uint64_t>(*alignment) > kMaxAlignment)
        fail(what_ + " is no power of two up to 1 MiB");
      alignment_ = static_cast<std::uint64_t>(*alignment);
    }
    header_.metadata.emplace_back(key, value);
  }

  GgufType value_type() {
    const auto type = number<std::uint32_t>("its type");
    if (type >= kGgufTypeCount) fail(fmt::format("{} has the unknown value type {}", what_, type));
    return static_cast<GgufType>(type);
  }

  GgufValue scalar(GgufType type) {
    if (type == GgufType::string) {
      const std::string_view text = string("its text", file_.size());
      return {type, std::as_bytes(std::span(text))};
    }
    const auto bytes = take(size_of(type), "its value");
    if (type == GgufType::boolean) check_booleans(bytes);
    return {type, bytes};
  }

  void check_booleans(std::span<const std::byte> bytes) const {
    for (const std::byte b : bytes)
      if (std::to_integer<int>(b) > 1) fail(what_ + " holds a bool that is neither 0 nor 1");
  }

  GgufValue list(int depth) {
    if (depth == kMaxDepth) fail(fmt::format("{} nests lists deeper than {}", what_, kMaxDepth));
    const auto type = value_type();
    const auto count = number<std::uint64_t>("the length of its list");
    const std::size_t begin = at_;
    if (const std::size_t size = size_of(type); size != 0) {
      if (count > left() / size) fail(fmt::format("{} claims a list of {}, beyond the file", what_, count));
      const auto bytes = take(count * size, "its list");
      if (type == GgufType::boolean) check_booleans(bytes);
    } else {
      // Each element has a length of its own, so that a count too large ends with the file.
      for (std::uint64_t i = 0; i < count; ++i) {
        if (type == GgufType::string)
          (void)string("a string of its list", file_.size());
        else
          (void)list(depth + 1);
      }
    }
    return {type, count, file_.subspan(begin, at_ - begin)};
  }

  void read_tensor() {
    GgufTensor tensor;
    tensor.name = string("a tensor's name", kMaxName);
    what_ = fmt::format("tensor '{}'", printable(tensor.name));
    if (!names_.insert(tensor.name).second) fail(what_ + " appears twice");
    const auto axes = number<std::uint32_t>("its number of axes");
    if (axes > kMaxAxes) fail(fmt::format("{} has {} axes, more than {}", what_, axes, kMaxAxes));
    std::vector<std::int64_t> extents(axes);
    for (std::int64_t& extent : extents) {
      const auto value = number<std::uint64_t>("its shape");
      if (value == 0 || value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail(fmt::format("{} has an extent of {}", what_, value));
      extent = static_cast<std::int64_t>(value);
    }
    const auto type = number<std::uint32_t>("its type");
    tensor.type = find_ggml_type(type);
    if (tensor.type == nullptr) fail(fmt::format("{} has the unknown type {}", what_, type));
    offsets_.push_back(number<std::uint64_t>("its offset"));
    for (auto i = extents.rbegin(); i != extents.rend(); ++i) tensor.shape.push_back(*i);
    header_.tensors.push_back(std::move(tensor));
  }

  /// Bytes of a tensor, checked factor by factor.
  std::uint64_t byte_size(const GgufTensor& tensor) const {
    const std::uint64_t row =
        tensor.shape.rank() == 0 ? 1 : static_cast<std::uint64_t>(tensor.shape[tensor.shape.rank() - 1]);
    if (row % tensor.type->values != 0)
      fail(fmt::format("{}: rows of {} are no whole blocks of {}", what_, row, tensor.type->name));
    std::uint64_t bytes = tensor.type->bytes;
    bool overflow = __builtin_mul_overflow(bytes, row / tensor.type->values, &bytes);
    for (int i = 0; i + 1 < tensor.shape.rank(); ++i)
      overflow =
          overflow || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(tensor.shape[i]), &bytes);
    if (overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail(what_ + " has a shape whose size overflows");
    return bytes;
  }

  void place_tensors() {
    if (header_.tensors.empty()) return;
    const std::uint64_t begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
    if (begin > file_.size()) fail("it ends before its data (a truncated file)");
    const auto data = file_.subspan(begin);
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
      GgufTensor& tensor = header_.tensors[i];
      what_ = fmt::format("tensor '{}'", printable(tensor.name));
      const std::uint64_t bytes = byte_size(tensor);
      const std::uint64_t offset = offsets_[i];
      if (offset % alignment_ != 0)
        fail(fmt::format("{} has the offset {}, no multiple of the alignment {}", what_, offset, alignment_));
      if (offset > data.size() || bytes > data.size() - offset) {
        fail(
            fmt::format("{} needs {} bytes at {}, outside of the file's {} bytes of data (a truncated file?)",
                        what_, bytes, offset, data.size()));
      }
      tensor.bytes = data.subspan(offset, bytes);
      order.emplace_back(offset, i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = header_.tensors[order[i - 1].second];
      const GgufTensor& after = header_.tensors[order[i].second];
      if (order[i - 1].first + before.bytes.size() > order[i].first)
        fail(fmt::format("tensors '{}' and '{}' overlap", printable(before.name), printable(after.name)));
    }
  }

  std::size_t left() const { return file_.size() - at_; }

  std::span<const std::byte> take(std::uint64_t count, const char* what) {
    if (count > left()) {
      fail(
          fmt::format("{} bytes for {} at byte {} are beyond its end (a truncated file?)", count, what, at_));
    }
    const auto bytes = file_.subspan(at_, count);
    at_ += count;
    return bytes;
  }

  template <class T>
  T number(const char* what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view string(const char* what, std::uint64_t most) {
    const auto length = number<std::uint64_t>(what);
    if (length > most) fail(fmt::format("{} claims {} bytes", what, length));
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(fmt::format("{}: not a valid GGUF file: {}", where_, problem));
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::string what_;  ///< what is being read, for messages
  std::uint64_t alignment_ = kDefaultAlignment;
  GgufHeader header_;
  std::vector<std::uint64_t> offsets_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
};

}  // namespace

GgufHeader parse_gguf(std::span<const std::byte> file, const std::string& where) {
  return Parser(file, where).parse();
}

}  // namespace caldera::detail
