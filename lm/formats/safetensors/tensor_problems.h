// TensorProblems: what is wrong with the tensors of a file, in one error. Private to lm/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lm/formats/safetensors/safetensors.h"

namespace caldera::detail {

/// Collects what is wrong with the tensors of a file, to report all of it in one line.
class TensorProblems {
 public:
  void missing(const std::string& name, const Shape& expected);
  void unexpected(const std::string& name);
  /// Notes a shape other than `expected`, or values that are not real numbers. `type` is how messages name
  /// what they are.
  void check(const std::string& name, const Shape& expected, const Shape& found, bool is_floating,
             std::string_view type);
  void check(const std::string& name, const Shape& expected, const TensorInfo& found);
  /// Throws FileError "where: problem; problem; ... and 12 more" if anything was noted.
  void throw_if_any(const std::string& where) const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace caldera::detail
