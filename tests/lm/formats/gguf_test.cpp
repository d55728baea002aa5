#include <gtest/gtest.h>

#include <random>

#include "lm/formats/gguf/gguf_file.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/formats/gguf_bytes.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::GgufBytes;
using testing::TempFolder;

detail::GgufHeader parse(const std::string& bytes) {
  return detail::parse_gguf(std::as_bytes(std::span(bytes)), "f.gguf");
}
std::string refusal(const GgufBytes& file) {
  return error_of<FileError>([&] { (void)parse(file.bytes()); });
}

/// One of each kind of value, and three tensors.
GgufBytes good_file() {
  GgufBytes f;
  f.front(3, 15);
  f.key("u8", 0).number<std::uint8_t>(200).key("i8", 1).number<std::int8_t>(-3);
  f.key("u16", 2).number<std::uint16_t>(60000).key("i16", 3).number<std::int16_t>(-4);
  f.key("u32", 4).u32(4'000'000'000U).key("i32", 5).number<std::int32_t>(-5);
  f.key("f32", 6).number(1e-5F).key("bool", 7).number<std::uint8_t>(1);
  f.key("string", 8).string("text \xE2\x96\x81");
  f.key("strings", 9).u32(8).u64(2).string("").string("b");
  f.key("u64", 10)
      .u64(1ULL << 40)
      .key("i64", 11)
      .number<std::int64_t>(-(1LL << 40))
      .key("f64", 12)
      .number(0.1);
  f.key("nested", 9).u32(9).u64(2).u32(5).u64(1).number<std::int32_t>(7).u32(5).u64(0);
  f.key("general.alignment", 4).u32(64);
  f.tensor("a", {4, 2}, 0, 0).tensor("b", {32, 3}, 8, 64).tensor("c", {}, 1, 192);
  f.pad(64).raw(std::string(32, 'a') + std::string(32, 0) + std::string(102, 'b') + std::string(26, 0) +
                "cc");
  return f;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  const TempFolder folder;
  folder.put("f.gguf", good_file().bytes());
  const auto file = detail::GgufFile::open(folder / "f.gguf");
  EXPECT_EQ(file.integer("u8"), 200);
  EXPECT_EQ(file.integer("i8"), -3);
  EXPECT_EQ(file.integer("u16"), 60000);
  EXPECT_EQ(file.integer("i16"), -4);
  EXPECT_EQ(file.integer("u32"), 4'000'000'000);
  EXPECT_EQ(file.integer("i32"), -5);
  EXPECT_EQ(file.number("f32"), 1e-5) << "the shortest decimal of the f32, not its digits as a double";
  EXPECT_EQ(file.boolean("bool"), true);
  EXPECT_EQ(file.string("string"), "text \xE2\x96\x81");
  EXPECT_EQ(file.integer("u64"), 1LL << 40);
  EXPECT_EQ(file.integer("i64"), -(1LL << 40));
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.find("strings")->strings(), (std::vector<std::string_view>{"", "b"}));
  EXPECT_EQ(file.find("nested")->count(), 2u);
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_EQ(file.integer("absent"), std::nullopt);
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)file.integer("string"); }),
                  "'string' must be an integer, not string");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)file.boolean("u8"); }), "must be a bool");

  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].shape, (Shape{2, 4}));
  EXPECT_EQ(file.tensors()[0].bytes.size(), 32u);
  EXPECT_EQ(file.tensors()[1].type->name, "Q8_0");
  EXPECT_EQ(file.tensors()[1].shape, (Shape{3, 32}));
  EXPECT_EQ(std::to_integer<char>(file.tensors()[1].bytes[101]), 'b');
  EXPECT_EQ(file.tensors()[2].shape.rank(), 0);
  EXPECT_EQ(std::to_integer<char>(file.tensors()[2].bytes[1]), 'c');
}

TEST(Gguf, RefusesHostileFiles) {
  const auto key = [](std::uint32_t type) { return GgufBytes().front(0, 1).key("k", type); };
  const auto tensor = [](const std::vector<std::uint64_t>& extents, std::uint32_t type,
                         std::uint64_t offset) {
    return GgufBytes().front(1, 0).tensor("t", extents, type, offset).pad().raw(std::string(64, 0));
  };
  constexpr std::uint64_t kHuge = ~0ULL;
  const std::vector<std::pair<GgufBytes, std::string>> cases{
      {GgufBytes(), "does not begin with"},
      {GgufBytes().raw("GGML").u32(3), "does not begin with"},
      {GgufBytes().front(0, 0, 1), "version 1"},
      {GgufBytes().front(0, 0, 4), "version 4"},
      {GgufBytes().front(0, 0, 0x03000000), "big-endian"},
      {GgufBytes().raw("GGUF").u32(3).u64(0), "truncated"},
      {GgufBytes().front(0, kHuge), "keys do not fit"},
      {GgufBytes().front(kHuge, 0), "tensors do not fit"},
      {GgufBytes().front(0, 1).u64(kHuge).raw(std::string(20, 'x')), "claims"},
      {GgufBytes().front(0, 1).u64(60000).raw(std::string(20, 'x')), "beyond its end"},
      {key(13).u64(0), "unknown value type 13"},
      {key(8).u64(kHuge), "claims"},
      {key(7).number<std::uint8_t>(2), "neither 0 nor 1"},
      {key(10).u32(1), "beyond its end"},
      {key(9).u32(4).u64(kHuge), "beyond the file"},
      {key(9).u32(4).u64(kHuge / 4 + 1), "beyond the file"},
      {key(9).u32(8).u64(kHuge).string("a"), "beyond its end"},
      {key(9).u32(13).u64(0), "unknown value type"},
      {key(9).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(4).u64(0), "nests"},
      {GgufBytes().front(0, 2).key("k", 4).u32(1).key("k", 4).u32(1), "'k' appears twice"},
      {GgufBytes().front(0, 1).key("general.alignment", 4).u32(0), "power of two"},
      {GgufBytes().front(0, 1).key("general.alignment", 4).u32(48), "power of two"},
      {GgufBytes().front(0, 1).key("general.alignment", 8).string("32"), "power of two"},
      {GgufBytes().front(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).pad().raw(std::string(64, 0)),
       "'t' appears twice"},
      {tensor({1, 1, 1, 1, 1}, 0, 0), "5 axes"},
      {tensor({0}, 0, 0), "extent of 0"},
      {tensor({kHuge}, 0, 0), "extent"},
      {tensor({1ULL << 62, 1ULL << 62}, 0, 0), "overflows"},
      {tensor({1ULL << 62}, 0, 0), "overflows"},
      {tensor({8}, 99, 0), "unknown type 99"},
      {tensor({8}, 4, 0), "unknown type 4"},
      {tensor({31}, 2, 0), "whole blocks of Q4_0"},
      {tensor({8}, 0, 16), "no multiple of the alignment"},
      {tensor({8}, 0, kHuge - 31), "outside"},
      {tensor({17}, 0, 0), "outside"},
      {tensor({8}, 0, 64), "outside"},
      {GgufBytes().front(2, 0).tensor("t", {9}, 0, 0).tensor("u", {8}, 0, 32).pad().raw(std::string(64, 0)),
       "'t' and 'u' overlap"},
      {GgufBytes().front(1, 0).tensor("t", {8}, 0, 0), "before its data"}};
  for (const auto& [file, problem] : cases) EXPECT_CONTAINS(refusal(file), problem);
}

/// Whatever bytes change, a file is read or refused; what is read is inside of it.
TEST(Gguf, SurvivesMutations) {
  const std::string good = good_file().bytes();
  std::mt19937 random(16);
  int read = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(random() % 2 == 0 ? 0xFF : 0);
          break;
        case 2:
          bytes.resize(at + 1);
          break;
        default:
          bytes.insert(at, 1 + random() % 8, static_cast<char>(random()));
      }
    }
    try {
      const auto header = parse(bytes);
      const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
      for (const auto& tensor : header.tensors) {
        ASSERT_GE(tensor.bytes.data(), begin);
        ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), begin + bytes.size());
      }
      for (const auto& [key, value] : header.metadata) {
        (void)value.integer(), (void)value.number(), (void)value.integers(), (void)value.floats();
        const auto texts = value.strings().value_or(std::vector<std::string_view>{});
        for (const auto text : texts) ASSERT_LE(text.size(), bytes.size());
      }
      ++read;
    } catch (const FileError&) {
    }
  }
  EXPECT_GT(read, 100) << "most changes are refused, but not all: names and numbers may be anything";
}

}  // namespace
}  // namespace caldera
