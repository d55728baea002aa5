// Which keys of a GGUF file are known. Private to lm/formats/.
#pragma once

#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {

/// Throws FileError naming the first key of the architecture that is not known, unless it is false, zero or
/// empty: it may change what the model computes. So does one that says what the family does not compute.
void check_keys(const GgufFile& file, const GgufFamily& family);

}  // namespace caldera::detail
