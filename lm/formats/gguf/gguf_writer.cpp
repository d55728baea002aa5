#include "lm/formats/gguf/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/gguf/ggml_type.h"

namespace caldera::detail {
namespace {

constexpr std::uint32_t kWrittenMagic = 0x46554747;
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kAlignment = 32;

std::uint64_t padding(std::uint64_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

/// Collects the bytes of a header.
class Bytes {
 public:
  template <class T>
  void number(T value) {
    const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void string(const std::string& text) {
    number<std::uint64_t>(text.size());
    const auto raw = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void type(GgufType type) { number(static_cast<std::uint32_t>(type)); }
  void pad() { bytes_.resize(bytes_.size() + padding(bytes_.size())); }
  std::vector<std::byte> take() { return std::move(bytes_); }

  // A value with its type before it.
  void value(std::uint32_t v) {
    type(GgufType::u32);
    number(v);
  }
  void value(float v) {
    type(GgufType::f32);
    number(v);
  }
  void value(bool v) {
    type(GgufType::boolean);
    number<std::uint8_t>(v ? 1 : 0);
  }
  void value(const std::string& v) {
    type(GgufType::string);
    string(v);
  }
  void value(const std::vector<std::string>& v) {
    list(GgufType::string, v.size());
    for (const std::string& text : v) string(text);
  }
  void value(const std::vector<float>& v) {
    list(GgufType::f32, v.size());
    for (const float x : v) number(x);
  }
  void value(const EncodedGgufValue& v) { bytes_.insert(bytes_.end(), v.bytes.begin(), v.bytes.end()); }
  void value(const std::vector<std::int32_t>& v) {
    list(GgufType::i32, v.size());
    for (const std::int32_t x : v) number(x);
  }

 private:
  void list(GgufType element, std::uint64_t count) {
    type(GgufType::list);
    type(element);
    number(count);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace

void GgufWriter::add(std::string key, const GgufValue& value) {
  Bytes out;
  out.type(value.type());
  if (value.is_list()) {
    out.type(value.element_type());
    out.number(value.count());
  } else if (value.type() == GgufType::string) {
    out.number<std::uint64_t>(value.bytes().size());
  }
  out.raw(value.bytes());
  metadata_.emplace_back(std::move(key), EncodedGgufValue{out.take()});
}

bool GgufWriter::has(const std::string& key) const {
  return std::ranges::any_of(metadata_, [&](const auto& entry) { return entry.first == key; });
}

void GgufWriter::add_tensor(std::string name, std::uint32_t type, const Shape& shape,
                            std::function<std::vector<std::byte>()> make) {
  const GgmlType* known = find_ggml_type(type);
  const std::int64_t row = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (known == nullptr || shape.rank() > 4 || row % known->values != 0)
    throw ValueError(
        fmt::format("GGUF has no tensor {} of shape {} and type {}", name, shape.to_string(), type));
  const auto elements = static_cast<std::uint64_t>(shape.numel());
  tensors_.push_back(
      {std::move(name), type, shape, elements / known->values * known->bytes, std::move(make)});
}

std::vector<std::byte> GgufWriter::header() const {
  Bytes out;
  out.number(kWrittenMagic);
  out.number(kVersion);
  out.number<std::uint64_t>(tensors_.size());
  out.number<std::uint64_t>(metadata_.size());
  for (const auto& [key, value] : metadata_) {
    out.string(key);
    std::visit([&](const auto& v) { out.value(v); }, value);
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    out.string(tensor.name);
    out.number(static_cast<std::uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank() - 1; i >= 0; --i)
      out.number(static_cast<std::uint64_t>(tensor.shape[i]));
    out.number(tensor.type);
    out.number(offset);
    offset += tensor.bytes + padding(tensor.bytes);
  }
  out.pad();
  return out.take();
}

void GgufWriter::write(StagedFiles& files, const std::filesystem::path& path) const {
  files.add(path, [&](const ByteSink& sink) {
    sink(header());
    constexpr std::array<std::byte, kAlignment> kZeros{};
    for (const Tensor& tensor : tensors_) {
      const std::vector<std::byte> bytes = tensor.make();
      if (bytes.size() != tensor.bytes)
        throw ValueError(
            fmt::format("tensor {} needs {} bytes, not {}", tensor.name, tensor.bytes, bytes.size()));
      sink(bytes);
      sink(std::span(kZeros).first(padding(bytes.size())));
    }
  });
}

}  // namespace caldera::detail
