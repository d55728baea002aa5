// Lists: tensors that a loop goes through one a turn, as lists behind one another in one list. Internal to
// engine/control.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Returns the tensors of all lists, list by list, numbers among them as tensors of `device`. Throws naming
/// `title`: ValueError for an empty list, ShapeError or DTypeError for one whose tensors differ.
std::vector<LazyTensor> checked_lists(std::span<const std::vector<LazyTensor>> lists, Device device,
                                      std::string_view title);

/// Takes them apart again: lists of `turns` tensors.
std::vector<std::vector<LazyTensor>> split_lists(std::span<const LazyTensor> listed, std::size_t turns);

/// Holds a list of which some tensors are given, and which number it has among lists of `turns` tensors.
struct GivenList {
  std::size_t number = 0;
  std::vector<LazyTensor> tensors;  // zeros in the place of empty ones
};
std::vector<GivenList> given_lists(std::span<const LazyTensor> listed, std::size_t turns);

/// A tensor of the type that one turn gets of a tensor that is gone through.
LazyTensor slice_like(const LazyTensor& x);

}  // namespace caldera
