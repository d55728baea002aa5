#include "engine/device/vulkan/products/product_problem.h"

#include <algorithm>
#include <cstdlib>

#include "engine/device/vulkan/record/recording.h"

namespace caldera::vulkan {

ProductProblem make_problem(const Step& step) {
  const int rank = step.dims.rank();
  const int m = rank - 3, n = rank - 2, k = rank - 1;
  const auto named = static_cast<std::size_t>(step.named_operands());
  ProductProblem p;
  p.m = step.dims[m];
  p.n = step.dims[n];
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Dims& s = step.operands[i].strides;
    const bool is_a = i < named && i % 2 == 0;
    const bool is_b = i < named && !is_a;
    p.views.push_back({{}, is_b ? s[k] : s[m], is_a ? s[k] : s[n], is_b});
  }
  const auto all = [&](auto&& condition) {
    for (std::size_t i = 0; i < p.views.size(); ++i) {
      if (!condition(p.views[i], step.operands[i].strides)) return false;
    }
    return true;
  };
  for (int d = 0; d < m; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    const bool joins = !p.batch.empty() && all([&](const ProductProblem::View& view, const Dims& strides) {
      return view.batch.back() == strides[d] * extent;
    });
    const int last = p.batch.rank() - 1;
    if (joins)
      p.batch[last] *= extent;
    else
      p.batch.push_back(extent);
    for (std::size_t i = 0; i < p.views.size(); ++i) {
      const std::int64_t stride = step.operands[i].strides[d];
      if (joins)
        p.views[i].batch[last] = stride;
      else
        p.views[i].batch.push_back(stride);
    }
  }
  // One B for all of a batch dimension: its rows join M (a linear layer over batch and sequence).
  while (!p.batch.empty()) {
    const int last = p.batch.rank() - 1;
    const bool joins = all([&](const ProductProblem::View& view, const Dims&) {
      return view.is_b ? view.batch[last] == 0 : p.m == 1 || view.batch[last] == p.m * view.rows;
    });
    if (!joins) break;
    for (ProductProblem::View& view : p.views) {
      if (p.m == 1 && !view.is_b) view.rows = view.batch[last];
      view.batch.erase(last);
    }
    p.m *= p.batch[last];
    p.batch.erase(last);
  }
  return p;
}

Dims view_extents(const ProductProblem& p, std::int64_t rows, std::int64_t columns) {
  Dims extents = p.batch;
  extents.push_back(rows);
  extents.push_back(columns);
  return extents;
}

Dims view_strides(const ProductProblem::View& v) {
  Dims strides = v.batch;
  strides.push_back(v.rows);
  strides.push_back(v.columns);
  return strides;
}

std::int64_t view_bias(const Dims& extents, const ProductProblem::View& view, const Step& step) {
  const Dims strides = view_strides(view);
  std::int64_t reach = 0;
  for (int d = 0; d < extents.rank(); ++d)
    reach += std::abs(strides[d]) * std::max<std::int64_t>(extents[d] - 1, 0);
  TableWriter::check_fits(reach, step);
  return bias(extents, strides);
}

}  // namespace caldera::vulkan
