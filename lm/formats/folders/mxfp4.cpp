// MXFP4 of gpt-oss (transformers' integrations/mxfp4.py): NAME_blocks u8 (experts, rows, blocks, 16) and
// NAME_scales u8 (experts, rows, blocks) are NAME, (experts, inputs, outputs) where it is not quantised; rows
// are outputs.
#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/formats/folders/mxfp4_blocks.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/changed_weight.h"

namespace caldera::detail {
namespace {

constexpr std::int64_t kCodesOfBlock = 16;  // bytes of a block's codes

}  // namespace

void read_mxfp4(FolderReader& reader, const JsonFields&) {
  constexpr std::string_view kBlocks = "_blocks";
  for (const std::string& name : reader.names()) {
    if (!name.ends_with(kBlocks)) continue;
    const std::string weight = name.substr(0, name.size() - kBlocks.size());
    const StoredTensor codes = reader.take(name);
    const Shape& s = codes.info.shape;
    if (codes.info.dtype != DType::u8 || s.rank() < 3 || s[s.rank() - 1] != kCodesOfBlock)
      FolderReader::fail(codes, fmt::format("is {} {}, expected U8 (..., rows, blocks, 16)",
                                            type_name(codes.info), s.to_string()));
    Shape groups;
    for (int i = 0; i + 1 < s.rank(); ++i) groups.push_back(s[i]);
    const StoredTensor scales = reader.take(weight + "_scales", "U8", groups);
    Shape shape = groups;
    if (__builtin_mul_overflow(groups[groups.rank() - 1], 32, &shape[groups.rank() - 1]))
      FolderReader::fail(codes, "has a shape whose size overflows");
    // The parameter itself is (experts, inputs, outputs).
    add_checked(reader, weight, [&] {
      return std::make_unique<ChangedWeight>(mxfp4_weight(shape, codes, scales),
                                             ValueChange{.transposed = true});
    });
  }
}

}  // namespace caldera::detail
