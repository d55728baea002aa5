#include "lm/formats/weights/model_weights.h"

#include <gtest/gtest.h>

#include "tests/lm/base/io_test_support.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;

void put_shard(const std::filesystem::path& path, const std::vector<std::pair<std::string, float>>& scalars) {
  std::vector<TensorToWrite> tensors;
  tensors.reserve(scalars.size());
  for (const auto& [name, value] : scalars) {
    tensors.push_back({name, DType::f32, {1}, std::as_bytes(std::span(&value, 1))});
  }
  write_safetensors(path, tensors, {{"shard", path.filename().string()}});
}

TEST(ModelWeights, SingleFile) {
  const TempFolder folder;
  put_shard(folder / "model.safetensors", {{"b", 1}, {"a", 2}});
  const auto weights = ModelWeights::open(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(weights.read_f32("a"), std::vector<float>{2});
  EXPECT_EQ(weights.metadata().at("shard"), "model.safetensors");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)weights.info("c"); }), "'c'");
}

TEST(ModelWeights, Shards) {
  const TempFolder folder;
  put_shard(folder / "model-1.safetensors", {{"b", 1}, {"a", 2}, {"unlisted", 9}});
  put_shard(folder / "model-2.safetensors", {{"c", 3}, {"a", 8}});
  folder.put(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":12},"weight_map":{"c":"model-2.safetensors","a":"model-1.safetensors",)"
      R"("b":"model-1.safetensors"}})");
  const auto weights = ModelWeights::open(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(weights.read_f32("a"), std::vector<float>{2}) << "the index says which shard counts";
  EXPECT_EQ(weights.read_f32("c"), std::vector<float>{3});
  EXPECT_FALSE(weights.contains("unlisted"));
  EXPECT_EQ(weights.info("b").shape, (Shape{1}));
  EXPECT_EQ(weights.bytes("b").size(), 4u);
}

TEST(ModelWeights, RefusesBadFolders) {
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { ModelWeights::open(folder / "absent"); }), "absent");
  EXPECT_CONTAINS(error_of<FileError>([&] { ModelWeights::open(folder.path()); }), "neither");
  const auto with_index = [&](const std::string& index) {
    folder.put("model.safetensors.index.json", index);
    return error_of<FileError>([&] { ModelWeights::open(folder.path()); });
  };
  put_shard(folder / "s", {{"a", 1}});
  EXPECT_CONTAINS(with_index("{"), "not valid JSON");
  EXPECT_CONTAINS(with_index("[]"), "not an object");
  EXPECT_CONTAINS(with_index("{}"), "weight_map");
  EXPECT_CONTAINS(with_index(R"({"weight_map":{}})"), "weight_map");
  EXPECT_CONTAINS(with_index(R"({"weight_map":{"a":3}})"), "not a string");
  EXPECT_CONTAINS(with_index(R"({"weight_map":{"b":"s"}})"), "'b' is not in its shard");
  EXPECT_CONTAINS(with_index(R"({"weight_map":{"a":"gone"}})"), "gone");
  for (const char* escape : {"../s", "/etc/passwd", "x/s", "..", ".", "", "x\\\\s", "s\\u0000"}) {
    EXPECT_CONTAINS(with_index(std::string(R"({"weight_map":{"a":")") + escape + "\"}}"), "model's folder");
  }
  EXPECT_CONTAINS(with_index(std::string(100'000, '[')), "nested deeper");
}

}  // namespace
}  // namespace caldera
