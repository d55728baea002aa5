#include "lm/formats/gguf/gguf_split.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::detail {

// llama.cpp's gguf-split: part i of n is "PREFIX-%05d-of-%05d.gguf", counted from 1; each says its number,
// counted from 0, and how many there are.
std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& path) {
  constexpr std::int64_t kMostParts = 10'000;
  std::vector<GgufFile> files;
  files.push_back(GgufFile::open(path));
  const std::int64_t count = files.front().integer("split.count").value_or(1);
  if (count <= 1) return files;
  if (count > kMostParts) files.front().fail("split.count", fmt::format("is {}", count));
  const std::string name = path.filename().string();
  const std::string ending = fmt::format("-00001-of-{:05}.gguf", count);
  if (files.front().integer("split.no").value_or(0) != 0 || !name.ends_with(ending))
    files.front().fail("split.count", fmt::format("says that this is one of {} parts; give the first one, "
                                                  "whose name ends in {}",
                                                  count, ending));
  const std::string prefix = name.substr(0, name.size() - ending.size());
  for (std::int64_t i = 1; i < count; ++i) {
    files.push_back(
        GgufFile::open(path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i + 1, count)));
    if (files.back().integer("split.no") != i || files.back().integer("split.count") != count)
      files.back().fail("split.no", fmt::format("does not say that this is part {} of {}", i + 1, count));
  }
  return files;
}

}  // namespace caldera::detail
