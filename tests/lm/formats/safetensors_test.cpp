#include "lm/formats/safetensors/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "tests/lm/base/io_test_support.h"
#include "tests/support/test_data.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::slurp;
using testing::TempFolder;

/// A file as bytes, from a header that need not be right.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const auto length = std::bit_cast<std::array<char, 8>>(static_cast<std::uint64_t>(header.size()));
  std::string file(length.data(), length.size());
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// Opens and reads everything there is to read. Together the tensors must be the file's data, byte for byte.
void read_all(const std::filesystem::path& path) {
  const auto file = SafetensorsFile::open(path);
  std::string data;
  for (const auto& name : file.names()) {
    const auto bytes = file.bytes(name);
    const auto numel = static_cast<std::size_t>(file.info(name).shape.numel());
    EXPECT_EQ(bytes.size(), numel * size_of(file.info(name).dtype));
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (is_floating(file.info(name).dtype)) {
      EXPECT_EQ(file.read_f32(name).size(), numel);
    }
  }
  EXPECT_TRUE(slurp(path).ends_with(data));
}

TEST(Safetensors, RoundTripOfEveryDType) {
  const TempFolder folder;
  const auto path = folder / "all.safetensors";
  const std::vector<float> f32{1.5F, -0.0F, std::numeric_limits<float>::infinity(), 3e-40F, 2, 3};
  const std::vector<double> f64{1.0 / 3.0, -1e300};
  const std::vector<std::uint16_t> f16{0x3C00, 0xC000, 0x0001};   // 1, -2, 2^-24
  const std::vector<std::uint16_t> bf16{0x3F80, 0xC040, 0x7F80};  // 1, -3, inf
  const std::vector<std::int64_t> i64{-1, 1LL << 40};
  const std::vector<std::int32_t> i32{-7};
  const std::vector<std::uint8_t> u8{0, 255, 7};
  const std::vector<std::uint32_t> u32{4294967295U};
  const std::vector<std::int16_t> i16{-32768, 1, 7};
  const std::vector<std::int8_t> i8{-128};
  const std::vector<std::uint8_t> flags{1, 0};
  const std::vector<TensorToWrite> tensors{
      {"flags", DType::boolean, {2}, bytes_of(flags)},
      {"w.u8", DType::u8, {3, 1}, bytes_of(u8)},
      {"w.f16", DType::f16, {3}, bytes_of(f16)},
      {"w.f32", DType::f32, {2, 3}, bytes_of(f32)},
      {"scalar", DType::i32, {}, bytes_of(i32)},
      {"w.f64", DType::f64, {1, 2, 1}, bytes_of(f64)},
      {"empty", DType::f32, {0, 5}, {}},
      {"w.i64", DType::i64, {2}, bytes_of(i64)},
      {"w.u32", DType::u32, {1}, bytes_of(u32)},
      {"w.i16", DType::i16, {3}, bytes_of(i16)},
      {"w.i8", DType::i8, {1}, bytes_of(i8)},
      {"ünïcode \"quoted\"\n", DType::bf16, {3}, bytes_of(bf16)},
  };
  write_safetensors(path, tensors, {{"format", "pt"}, {"note", "zwölf\n"}});

  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"note", "zwölf\n"}}));
  ASSERT_EQ(file.names().size(), tensors.size());
  for (const auto& tensor : tensors) {
    ASSERT_TRUE(file.contains(tensor.name)) << tensor.name;
    EXPECT_EQ(file.info(tensor.name).dtype, tensor.dtype) << tensor.name;
    EXPECT_EQ(file.info(tensor.name).shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(file.bytes(tensor.name), tensor.bytes)) << tensor.name;
  }
  EXPECT_EQ(file.read_f32("w.f32"), f32);
  EXPECT_EQ(file.read_f32("w.f64"),
            (std::vector<float>{static_cast<float>(1.0 / 3.0), -std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(file.read_f32("w.f16"), (std::vector<float>{1.0F, -2.0F, std::ldexp(1.0F, -24)}));
  EXPECT_EQ(file.read_f32("ünïcode \"quoted\"\n"),
            (std::vector<float>{1.0F, -3.0F, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(file.read_f32("empty").empty());
  EXPECT_CONTAINS(error_of<DTypeError>([&] { (void)file.read_f32("w.i64"); }), "w.i64");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)file.bytes("absent"); }), "absent");
  EXPECT_FALSE(file.contains("absent"));

  // The layout that other readers rely on: an 8-byte aligned data section, wide dtypes first.
  const std::string raw = slurp(path);
  std::uint64_t header = 0;
  std::memcpy(&header, raw.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  const auto json = nlohmann::json::parse(raw.substr(8, header));
  EXPECT_EQ(json.at("w.f64").at("data_offsets"), nlohmann::json({0, 16}));
  EXPECT_EQ(json.at("w.f64").at("shape"), nlohmann::json({1, 2, 1}));
  EXPECT_EQ(json.at("w.u8").at("dtype"), "U8");
  EXPECT_EQ(json.at("w.u32").at("dtype"), "U32");
  EXPECT_EQ(json.at("w.i16").at("dtype"), "I16");
  EXPECT_EQ(json.at("w.i8").at("dtype"), "I8");
  EXPECT_EQ(file.names().front(), "w.f64");
}

TEST(Safetensors, EmptyFileOfTensorsRoundTrips) {
  const TempFolder folder;
  write_safetensors(folder / "none", {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "none").names().empty());
}

TEST(Safetensors, MovedFileKeepsItsSpans) {
  const TempFolder folder;
  const std::vector<float> values{1, 2, 3};
  const TensorToWrite tensor{"t", DType::f32, {3}, bytes_of(values)};
  write_safetensors(folder / "m", std::span(&tensor, 1));
  auto first = SafetensorsFile::open(folder / "m");
  const auto span = first.bytes("t");
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(span.data(), second.bytes("t").data());
  EXPECT_EQ(second.read_f32("t"), values);
}

TEST(Safetensors, WriterRefusesWhatItCannotWrite) {
  const TempFolder folder;
  const auto path = folder / "w";
  const std::vector<float> values{1, 2, 3};
  const auto write = [&](std::vector<TensorToWrite> tensors,
                         std::map<std::string, std::string> metadata = {}) {
    return error_of<ValueError>([&] { write_safetensors(path, tensors, metadata); });
  };
  const auto bytes = bytes_of(values);
  EXPECT_CONTAINS(write({{"a", DType::f32, {2}, bytes}}), "needs 8 bytes, not 12");
  EXPECT_CONTAINS(write({{"a", DType::f64, {3}, bytes}}), "'a'");
  EXPECT_CONTAINS(write({{"a", DType::f32, {-3}, bytes}}), "shape");
  EXPECT_CONTAINS(write({{"a", DType::f32, {1LL << 40, 1LL << 40}, bytes}}), "shape");
  EXPECT_CONTAINS(write({{"a", DType::f32, {3}, bytes}, {"a", DType::f32, {3}, bytes}}), "two tensors");
  EXPECT_CONTAINS(write({{"__metadata__", DType::f32, {3}, bytes}}), "reserves");
  EXPECT_CONTAINS(write({{"\xFF", DType::f32, {3}, bytes}}), "UTF-8");
  EXPECT_CONTAINS(write({}, {{"k", "\xC3"}}), "UTF-8");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Safetensors, ReadsAFileOfTheReferenceImplementation) {
  CALDERA_REQUIRE_DATA(path, "stories260K/model.safetensors");
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.contains("model.embed_tokens.weight"));
  EXPECT_EQ(file.info("model.embed_tokens.weight").shape, (Shape{512, 64}));
  EXPECT_EQ(file.info("model.layers.4.self_attn.k_proj.weight").shape, (Shape{32, 64}));
  const auto values = file.read_f32("model.norm.weight");
  ASSERT_EQ(values.size(), 64u);
  for (const float value : values) EXPECT_TRUE(std::isfinite(value));
}

struct BadFile {
  const char* what;
  std::string content;
  const char* message;
};

std::string one(const std::string& info, std::size_t data = 8) {
  return file_of(R"({"a":)" + info + "}", data);
}

std::vector<BadFile> bad_files() {
  const std::string good_a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string huge_length("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10);
  const std::string over_limit("\x01\xE1\xF5\x05\0\0\0\0{}", 10);  // 100,000,001
  return {
      {"nothing", "", "too few"},
      {"seven bytes", "1234567", "too few"},
      {"no header", std::string(8, '\0'), "'{'"},
      {"huge header length", huge_length, "header of 18446744073709551615"},
      {"header over the limit", over_limit, "header of 100000001"},
      {"header longer than the file", file_of("{}", 0).replace(0, 1, "\x03"), "does not fit"},
      {"not JSON", file_of("{nonsense}", 0), "malformed"},
      {"a list", file_of("[]", 0), "'{'"},
      {"blank first", file_of(" {}", 0), "'{'"},
      {"byte-order mark first", file_of("\xEF\xBB\xBF{}", 0), "'{'"},
      {"text after the header", file_of("{} x", 0), "malformed"},
      {"NUL padding", file_of(std::string("{}\0\0", 4), 0), "NUL"},
      {"cut JSON", file_of("{\"a\":{\"dtype\"", 0), "malformed"},
      {"bad UTF-8", file_of("{\"\xFF\":{}}", 0), "malformed"},
      {"deep nesting", file_of("{\"a\":" + std::string(200'000, '['), 0), "list where none belongs"},
      {"deep objects", one("{\"dtype\":{\"dtype\":{}}}"), "object where none belongs"},
      {"duplicate name", file_of("{" + good_a + "," + good_a + "}", 8), "twice"},
      {"duplicate field", one(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "twice"},
      {"duplicate metadata", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "duplicate"},
      {"duplicate metadata key", file_of(R"({"__metadata__":{"a":"","a":""}})", 0), "duplicate"},
      {"metadata that is a number", file_of(R"({"__metadata__":{"a":1}})", 0), "must be strings"},
      {"metadata that is null", file_of(R"({"__metadata__":{"a":null}})", 0), "must be strings"},
      {"metadata that is an object", file_of(R"({"__metadata__":{"a":{}}})", 0), "object where none"},
      {"metadata that is no object", file_of(R"({"__metadata__":"a"})", 0), "string where none"},
      {"unknown dtype", one(R"({"dtype":"F6_E2M3","shape":[8],"data_offsets":[0,8]})"),
       "'a' has dtype 'F6_E2M3'"},
      {"dtype in lower case", one(R"({"dtype":"f32","shape":[2],"data_offsets":[0,8]})"), "dtype 'f32'"},
      {"dtype that is a number", one(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), "number where none"},
      {"no dtype", one(R"({"shape":[2],"data_offsets":[0,8]})"), "no dtype"},
      {"no shape", one(R"({"dtype":"F32","data_offsets":[0,8]})"), "no shape"},
      {"no offsets", one(R"({"dtype":"F32","shape":[2]})"), "data_offsets"},
      {"one offset", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})"), "data_offsets"},
      {"three offsets", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})"), "more than two"},
      {"unknown field", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"), "unknown field"},
      {"negative extent", one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "negative"},
      {"fractional extent", one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "no integer"},
      {"nested shape", one(R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})"), "list where none"},
      {"extent over 2^63", one(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})"),
       "too large"},
      {"extent over 2^64", one(R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]})"),
       "no integer"},
      {"overflowing shape", one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
       "overflows"},
      {"shape that wraps round to 8 bytes",
       one(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"), "overflows"},
      {"overflow before a zero",
       one(R"({"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]})", 0), "overflows"},
      {"thirteen dimensions",
       one(R"({"dtype":"F32","shape":[2,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]})"), "dimensions"},
      {"size and shape differ", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "needs 12 bytes"},
      {"size and dtype differ", one(R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})"), "needs 16 bytes"},
      {"offsets swapped", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "outside"},
      {"end beyond the file", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), "outside"},
      {"end far beyond",
       one(R"({"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]})"),
       "outside"},
      {"hole at the start", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "hole"},
      {"unclaimed end", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "overlong"},
      {"hole between",
       file_of("{" + good_a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16), "hole"},
      {"overlap", file_of("{" + good_a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
       "overlap"},
      {"same bytes twice",
       file_of("{" + good_a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8), "overlap"},
  };
}

TEST(Safetensors, RefusesLyingFiles) {
  const TempFolder folder;
  for (const auto& bad : bad_files()) {
    SCOPED_TRACE(bad.what);
    const auto path = folder.put("bad.safetensors", bad.content);
    const auto message = error_of<FileError>([&] { SafetensorsFile::open(path); });
    EXPECT_CONTAINS(message, bad.message);
    EXPECT_CONTAINS(message, "bad.safetensors");
  }
  EXPECT_CONTAINS(error_of<FileError>([&] { SafetensorsFile::open(folder / "absent"); }), "absent");
  EXPECT_CONTAINS(error_of<FileError>([&] { SafetensorsFile::open(folder.path()); }), "folder");
}

TEST(Safetensors, AcceptsUnusualButValidFiles) {
  const TempFolder folder;
  // Trailing blanks, keys in another order, tensors in another order than their bytes, an odd data address.
  const auto path =
      folder.put("odd", file_of(R"({"b":{"data_offsets":[4,6],"shape":[1],"dtype":"F16"},)"
                                R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{},)"
                                R"("z":{"dtype":"F64","shape":[0,9],"data_offsets":[6,6]}}   )",
                                6));
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b", "z"}));
  EXPECT_EQ(file.info("a").shape.rank(), 0);
  EXPECT_EQ(file.read_f32("a"), std::vector<float>{std::bit_cast<float>(0x03020100u)});
  EXPECT_EQ(file.read_f32("b").size(), 1u);
}

std::string small_file(const TempFolder& folder) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint16_t> b{1, 2};
  const std::vector<TensorToWrite> tensors{{"layer.0.weight", DType::f32, {2, 3}, bytes_of(a)},
                                           {"layer.0.bias", DType::bf16, {2}, bytes_of(b)}};
  write_safetensors(folder / "small", tensors, {{"format", "pt"}});
  return slurp(folder / "small");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TempFolder folder;
  const auto whole = small_file(folder);
  EXPECT_NO_THROW(read_all(folder / "small"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto path = folder.put("cut", whole.substr(0, length));
    EXPECT_THROW(SafetensorsFile::open(path), FileError) << "cut to " << length << " bytes";
  }
  EXPECT_THROW(SafetensorsFile::open(folder.put("long", whole + '\0')), FileError);
}

TEST(Safetensors, SurvivesRandomDamage) {
  const TempFolder folder;
  const auto whole = small_file(folder);
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  std::mt19937 random(20240611);
  int refused = 0;
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % (8 + header);
      // Digits and punctuation meet the checks behind the JSON parser more often than random bytes do.
      constexpr std::string_view kLikely = "0123456789[]{},:\" -.eE";
      damaged[at] =
          random() % 2 == 0 ? static_cast<char>(random() % 256) : kLikely[random() % kLikely.size()];
    }
    const auto path = folder.put("damaged", damaged);
    try {
      read_all(path);
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }  // anything else fails the test, or crashes it
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(accepted, 50) << "letters within names may change without harm";
}

}  // namespace
}  // namespace caldera
