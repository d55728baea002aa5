// MXFP4 as safetensors hold it, as ggml's blocks. Private to lm/formats/.
#pragma once

#include "lm/formats/folders/folder_reader.h"

namespace caldera::detail {

/// A weight of MXFP4. `codes` hold 16 bytes a block of 32 elements, element 2j in the low nibble of byte j
/// and 2j + 1 in the high one; `scales` a byte a block, the exponent. Nothing is lost: blocks get ggml's
/// order, byte j with elements j and j + 16. Throws ShapeError for sizes that do not fit.
StoredWeightPtr mxfp4_weight(const Shape& shape, const StoredTensor& codes, const StoredTensor& scales);

}  // namespace caldera::detail
