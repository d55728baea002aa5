// GGUF files that were split into parts. Private to lm/formats/.
#pragma once

#include <vector>

#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {

/// The file, or all parts of the model whose first part it is ("NAME-00001-of-00003.gguf"): the first has the
/// metadata. Throws FileError for another part than the first, for parts that are missing, and for those that
/// do not belong together.
std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& path);

}  // namespace caldera::detail
