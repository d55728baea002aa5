#include "training/vision/data/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "engine/base/error.h"
#include "training/vision/data/image_bytes.h"

#if CALDERA_HAS_PNG
#include <png.h>
#endif
#if CALDERA_HAS_JPEG
#include <jpeglib.h>
#endif

namespace caldera::vision {
namespace {

constexpr std::array<std::uint8_t, 8> kPngBegin{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/// Holds bytes row by row, each pixel's channels one after the other.
struct Rows {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> bytes;
  bool has_inks = false;  ///< cyan, magenta, yellow and black, of which 255 is none
};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw FileError(fmt::format("{}: {}", name, why));
}

void check_size(const std::string& name, std::int64_t width, std::int64_t height, std::int64_t most) {
  if (width < 1 || height < 1 || height > most / width)
    refuse(name, fmt::format("an image of {} x {} pixels; at most {} are read", width, height, most));
}

#if CALDERA_HAS_PNG
Rows decode_png(std::span<const std::uint8_t> bytes, const std::string& name,
                const ImageFileOptions& options) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const struct Free {
    png_image& image;
    ~Free() { png_image_free(&image); }
  } free{image};
  const auto fail = [&] { refuse(name, fmt::format("a damaged PNG file: {}", image.message)); };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) fail();
  check_size(name, image.width, image.height, options.most_pixels);
  image.format = options.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Rows rows{options.channels, image.height, image.width, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  const png_color black{0, 0, 0};  // behind what is transparent
  if (png_image_finish_read(&image, &black, rows.bytes.data(), 0, nullptr) == 0) fail();
  // Warnings (a sum that does not fit, say) do not stop libpng; here they do.
  if (image.warning_or_error != 0) fail();
  return rows;
}
#else
Rows decode_png(std::span<const std::uint8_t> /*bytes*/, const std::string& name,
                const ImageFileOptions& /*options*/) {
  refuse(name, "a PNG file, and this program was built without libpng (libpng-dev)");
}
#endif

#if CALDERA_HAS_JPEG
/// libjpeg's errors as a jump back, as its interface wants it.
struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> message;
};

void jpeg_failed(j_common_ptr info) {
  auto* const failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message.data());
  std::longjmp(failure->back, 1);
}
/// A warning means data that are cut or damaged.
void jpeg_warned(j_common_ptr info, int level) {
  if (level < 0) jpeg_failed(info);
}

/// What holds memory stands outside of this function, which jumps.
bool read_jpeg(jpeg_decompress_struct& info, JpegFailure& failure, std::span<const std::uint8_t> bytes,
               const ImageFileOptions& options, Rows& rows) {
  if (setjmp(failure.back) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  rows.width = info.image_width;
  rows.height = info.image_height;
  if (rows.width < 1 || rows.height < 1 || rows.height > options.most_pixels / rows.width) return true;
  rows.has_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = rows.has_inks ? JCS_CMYK : options.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  rows.channels = info.output_components;
  rows.bytes.resize(static_cast<std::size_t>(rows.channels * rows.height * rows.width));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rows.bytes.data() + static_cast<std::size_t>(info.output_scanline) *
                                           static_cast<std::size_t>(rows.channels * rows.width);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

/// Makes colours of inks, each of which lets so much of the paper's light through, and greys of colours where
/// one channel is wanted, by the weights of JFIF.
Rows without_inks(const Rows& inks, std::int64_t channels) {
  Rows rows{channels, inks.height, inks.width, {}};
  rows.bytes.reserve(inks.bytes.size() / 4 * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < inks.bytes.size(); i += 4) {
    std::array<int, 3> color{};
    for (std::size_t c = 0; c < 3; ++c) color[c] = (inks.bytes[i + c] * inks.bytes[i + 3] + 127) / 255;
    if (channels == 3)
      for (const int x : color) rows.bytes.push_back(static_cast<std::uint8_t>(x));
    else
      rows.bytes.push_back(
          static_cast<std::uint8_t>((299 * color[0] + 587 * color[1] + 114 * color[2] + 500) / 1000));
  }
  return rows;
}

Rows decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name,
                 const ImageFileOptions& options) {
  Rows rows;
  jpeg_decompress_struct info{};
  JpegFailure failure{};
  info.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = jpeg_failed;
  failure.manager.emit_message = jpeg_warned;
  const bool read = read_jpeg(info, failure, bytes, options, rows);
  jpeg_destroy_decompress(&info);
  if (!read) refuse(name, fmt::format("a damaged JPEG file: {}", failure.message.data()));
  check_size(name, rows.width, rows.height, options.most_pixels);
  return rows.has_inks ? without_inks(rows, options.channels) : rows;
}
#else
Rows decode_jpeg(std::span<const std::uint8_t> /*bytes*/, const std::string& name,
                 const ImageFileOptions& /*options*/) {
  refuse(name, "a JPEG file, and this program was built without libjpeg (libjpeg-dev)");
}
#endif

}  // namespace

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name,
                   const ImageFileOptions& options) {
  if (options.channels != 1 && options.channels != 3)
    throw ValueError(fmt::format("decode_image: {} channels; 1 or 3 can be read", options.channels));
  Rows rows;
  if (bytes.size() >= kPngBegin.size() && std::equal(kPngBegin.begin(), kPngBegin.end(), bytes.begin()))
    rows = decode_png(bytes, name, options);
  else if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
    rows = decode_jpeg(bytes, name, options);
  else
    refuse(name, "neither a PNG nor a JPEG file, by its first bytes");
  Image image = Image::zeros(rows.channels, rows.height, rows.width);
  const std::size_t channels = static_cast<std::size_t>(rows.channels),
                    area = static_cast<std::size_t>(rows.height * rows.width);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < area; ++i)
      image.pixels[c * area + i] = static_cast<float>(rows.bytes[i * channels + c]) / 255.0F;
  }
  return image;
}

Image read_image(const std::filesystem::path& path, const ImageFileOptions& options) {
  return decode_image(read_image_bytes(path), path.string(), options);
}

std::vector<std::filesystem::path> image_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string kind = entry.path().extension().string();
    std::ranges::transform(kind, kind.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    if (entry.is_regular_file() && (kind == ".png" || kind == ".jpg" || kind == ".jpeg"))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace caldera::vision
