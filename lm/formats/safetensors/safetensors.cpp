#include "lm/formats/safetensors/safetensors.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <unordered_map>

#include "engine/base/error.h"
#include "engine/tensor/dispatch.h"
#include "lm/base/json_file.h"
#include "lm/base/mapped_file.h"
#include "lm/formats/safetensors/safetensors_header.h"

namespace caldera {

static_assert(std::endian::native == std::endian::little, "tensor bytes are used as the file holds them");

namespace {

constexpr std::uint64_t kLengthBytes = 8;

template <class T>
void convert(std::span<const std::byte> bytes, std::vector<float>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));  // bytes may be unaligned
    out[i] = static_cast<float>(to_number(value));
  }
}

}  // namespace

struct SafetensorsFile::Impl {
  struct Entry {
    TensorInfo info;
    std::span<const std::byte> bytes;
  };

  explicit Impl(const std::filesystem::path& file) : path(file), mapping(file) {
    const auto all = mapping.bytes();
    const auto where = path.string();
    const auto fail = [&](const std::string& why) {
      throw FileError(fmt::format("{}: not a valid safetensors file: {}", where, why));
    };
    if (all.size() < kLengthBytes) fail(fmt::format("{} bytes are too few for a header", all.size()));
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, all.data(), sizeof(header_bytes));
    if (header_bytes > detail::kMaxSafetensorsHeader) fail(fmt::format("a header of {} bytes", header_bytes));
    if (header_bytes > all.size() - kLengthBytes) {
      fail(fmt::format("its header of {} bytes does not fit the file of {} bytes", header_bytes, all.size()));
    }
    const std::string_view json(reinterpret_cast<const char*>(all.data()) + kLengthBytes, header_bytes);
    const auto data = all.subspan(kLengthBytes + header_bytes);
    auto header = detail::parse_safetensors_header(json, data.size(), where);

    metadata = std::move(header.metadata);
    names.reserve(header.entries.size());
    entries.reserve(header.entries.size());
    for (auto& entry : header.entries) {
      names.push_back(entry.name);
      entries.emplace(std::move(entry.name),
                      Entry{entry.info, data.subspan(entry.begin, entry.end - entry.begin)});
    }
  }

  const Entry& at(std::string_view name) const {
    const auto it = entries.find(std::string(name));
    if (it == entries.end()) {
      throw FileError(fmt::format("{}: there is no tensor '{}'", path.string(), detail::printable(name)));
    }
    return it->second;
  }

  std::filesystem::path path;
  detail::MappedFile mapping;
  std::vector<std::string> names;
  std::unordered_map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  return SafetensorsFile(std::make_unique<Impl>(path));
}

const std::vector<std::string>& SafetensorsFile::names() const { return impl_->names; }
bool SafetensorsFile::contains(std::string_view name) const {
  return impl_->entries.contains(std::string(name));
}
const TensorInfo& SafetensorsFile::info(std::string_view name) const { return impl_->at(name).info; }
std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  return impl_->at(name).bytes;
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return impl_->metadata; }
const std::filesystem::path& SafetensorsFile::path() const { return impl_->path; }

std::vector<float> SafetensorsFile::read_f32(std::string_view name) const {
  const auto& entry = impl_->at(name);
  std::vector<float> out(entry.bytes.size() / size_of(entry.info.dtype));
  if (!is_floating(entry.info.dtype))
    throw DTypeError(fmt::format(
        "{}: tensor '{}' is {}, not a floating-point type", impl_->path.string(), detail::printable(name),
        entry.info.foreign == ForeignType::none ? caldera::name(entry.info.dtype) : type_name(entry.info)));
  dispatch<is_floating>(entry.info.dtype, [&]<class T>() { convert<T>(entry.bytes, out); });
  return out;
}

}  // namespace caldera
