#include "training/vision/data/image_bytes.h"

#include <fmt/format.h>

#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/sha256.h"

#if CALDERA_HAS_ZLIB
#include <zlib.h>
#endif

namespace caldera::vision {
namespace {

namespace fs = std::filesystem;

/// Returns the sum that SHA256SUMS beside the file has for it; empty where there is none.
std::string stated_sum(const fs::path& path) {
  const fs::path sums = path.parent_path() / "SHA256SUMS";
  if (!fs::is_regular_file(sums)) return {};
  std::istringstream lines(read_text_file(sums, 1 << 20));
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    std::string_view name = std::string_view(line).substr(space);
    while (!name.empty() && (name.front() == ' ' || name.front() == '*')) name.remove_prefix(1);
    if (name == path.filename().string()) return line.substr(0, space);
  }
  return {};
}

#if CALDERA_HAS_ZLIB
std::vector<std::uint8_t> unpacked(std::span<const std::byte> bytes, const fs::path& path, std::size_t most) {
  const auto fail = [&](const std::string& why) -> void {
    throw FileError(fmt::format("{}: {}; get the file again", path.string(), why));
  };
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail("zlib does not begin");
  const struct End {
    z_stream& stream;
    ~End() { inflateEnd(&stream); }
  } end{stream};
  std::vector<std::uint8_t> out;
  std::size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && taken < bytes.size()) {
      const std::size_t part = std::min<std::size_t>(bytes.size() - taken, 1 << 24);
      // zlib takes it without const, and reads alone.
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data() + taken));
      stream.avail_in = static_cast<uInt>(part);
      taken += part;
    }
    const std::size_t held = out.size();
    if (held > most) fail(fmt::format("it unpacks to more than {} bytes", most));
    out.resize(held + (1 << 20));
    stream.next_out = out.data() + held;
    stream.avail_out = 1 << 20;
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && taken == bytes.size()))
      fail("it ends before its gzip data do");
    if (state != Z_OK && state != Z_STREAM_END)
      fail(
          fmt::format("its gzip data are damaged ({})", stream.msg != nullptr ? stream.msg : "no gzip file"));
  }
  if (out.size() > most) fail(fmt::format("it unpacks to more than {} bytes", most));
  return out;
}
#else
std::vector<std::uint8_t> unpacked(std::span<const std::byte> /*bytes*/, const fs::path& path,
                                   std::size_t /*most*/) {
  throw FileError(
      path.string() +
      ": this program was built without zlib; unpack the file with gunzip, or build with zlib1g-dev");
}
#endif

}  // namespace

std::vector<std::uint8_t> read_image_bytes(const fs::path& path, std::size_t most) {
  const std::string content = read_text_file(path, most);
  const auto bytes = std::as_bytes(std::span(content));
  if (const std::string sum = stated_sum(path); !sum.empty()) {
    if (const std::string own = Sha256().add(bytes).hex(); own != sum)
      throw FileError(fmt::format("{}: its SHA-256 is {}, and SHA256SUMS has {}; get the file again",
                                  path.string(), own, sum));
  }
  if (path.extension() == ".gz") return unpacked(bytes, path, most);
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

}  // namespace caldera::vision
