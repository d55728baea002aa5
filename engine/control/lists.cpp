#include "engine/control/lists.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/autodiff/argument_checks.h"
#include "engine/base/error.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"

namespace caldera {

std::vector<LazyTensor> checked_lists(std::span<const std::vector<LazyTensor>> lists, Device device,
                                      std::string_view title) {
  std::vector<LazyTensor> all;
  for (std::size_t l = 0; l < lists.size(); ++l) {
    const std::vector<LazyTensor>& list = lists[l];
    if (list.empty())
      throw ValueError(fmt::format("{}: list {} is empty; give a tensor for each turn", title, l));
    check_defined(list, title, fmt::format("tensor of list {}", l));
    const std::size_t begin = all.size();
    for (std::size_t t = 0; t < list.size(); ++t) {
      const LazyTensor& x = all.emplace_back(ops::anchored(list[t], device));
      const LazyTensor& first = all[begin];
      if (x.shape() != first.shape()) {
        throw ShapeError(fmt::format(
            "{}: tensor {} of list {} has shape {}, and the first one {}; a list has tensors of one shape",
            title, t, l, x.shape().to_string(), first.shape().to_string()));
      }
      if (x.dtype() != first.dtype()) {
        throw DTypeError(fmt::format(
            "{}: tensor {} of list {} is {}, and the first one {}; a list has tensors of one type: convert "
            "with astype()",
            title, t, l, name(x.dtype()), name(first.dtype())));
      }
    }
  }
  return all;
}

std::vector<std::vector<LazyTensor>> split_lists(std::span<const LazyTensor> listed, std::size_t turns) {
  std::vector<std::vector<LazyTensor>> lists;
  for (; !listed.empty(); listed = listed.subspan(turns))
    lists.emplace_back(listed.begin(), listed.begin() + static_cast<std::ptrdiff_t>(turns));
  return lists;
}

std::vector<GivenList> given_lists(std::span<const LazyTensor> listed, std::size_t turns) {
  std::vector<GivenList> given;
  for (std::size_t number = 0; number * turns < listed.size(); ++number) {
    const auto list = listed.subspan(number * turns, turns);
    const auto some = std::ranges::find_if(list, &LazyTensor::defined);
    if (some == list.end()) continue;
    GivenList& own = given.emplace_back(GivenList{.number = number, .tensors = {}});
    for (const LazyTensor& x : list) own.tensors.push_back(x.defined() ? x : zeros_like(*some));
  }
  return given;
}

LazyTensor slice_like(const LazyTensor& x) {
  return empty(Shape(Dims(std::span(x.shape().begin() + 1, x.shape().end()))), x.dtype(), x.device());
}

}  // namespace caldera
