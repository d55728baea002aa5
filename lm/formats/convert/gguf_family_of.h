// The GGUF family of a configuration. Private to lm/formats/.
#pragma once

#include "lm/formats/gguf/gguf_family.h"

namespace caldera::detail {

class JsonFields;

/// Throws FileError, naming those that can be written, for a model_type that cannot.
const GgufFamily& gguf_family_of(const JsonFields& fields);

}  // namespace caldera::detail
