// UsageError: what ends the program with exit code 2.
#pragma once

#include "engine/base/error.h"

namespace caldera::cli {

/// Bad arguments: the program ends with exit code 2. Every other exception ends it with 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace caldera::cli
