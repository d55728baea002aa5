// Convolutions by their sum, one product at a time.
#include <vector>

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

std::vector<double> values_of(const StepMemory& memory, std::size_t k, const Shape& extents) {
  std::vector<double> values;
  for_each_point(Point(extents.begin(), extents.end()),
                 [&](const Point& at) { values.push_back(memory.read(k, memory.step().dtype, at).f); });
  return values;
}

}  // namespace

void run_step(const StepMemory& memory, const ConvolutionStep& convolution) {
  const Shape& out = memory.step().dims;
  const ConvolutionNode& what = convolution.what;
  std::vector<double> a = values_of(memory, 0, convolution.a), b = values_of(memory, 1, convolution.b),
                      result(static_cast<std::size_t>(out.numel()), 0.0);
  const Shape &xs = what.x(convolution.a, convolution.b, out),
              &ws = what.w(convolution.a, convolution.b, out),
              &ys = what.y(convolution.a, convolution.b, out);
  std::vector<double>& x = what.work == ConvolutionWork::input_gradient ? result : a;
  std::vector<double>& w = what.work == ConvolutionWork::weight_gradient ? result : b;
  std::vector<double>& y = what.work == ConvolutionWork::forward          ? result
                           : what.work == ConvolutionWork::input_gradient ? a
                                                                          : b;
  const auto place = [](const Shape& shape, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
    return static_cast<std::size_t>(((i * shape[1] + j) * shape[2] + k) * shape[3] + l);
  };
  const std::int64_t outputs = ws[0] / what.groups;
  for_each_point(Point(ys.begin(), ys.end()), [&](const Point& at) {
    for_each_point(Point{ws[1], ws[2], ws[3]}, [&](const Point& tap) {
      const std::int64_t row = at[2] * what.stride[0] - what.padding[0] + tap[1] * what.dilation[0],
                         column = at[3] * what.stride[1] - what.padding[1] + tap[2] * what.dilation[1];
      if (row < 0 || column < 0 || row >= xs[2] || column >= xs[3]) return;
      const std::size_t of_y = place(ys, at[0], at[1], at[2], at[3]),
                        of_w = place(ws, at[1], tap[0], tap[1], tap[2]),
                        of_x = place(xs, at[0], at[1] / outputs * ws[1] + tap[0], row, column);
      switch (what.work) {
        case ConvolutionWork::forward:
          y[of_y] += w[of_w] * x[of_x];
          break;
        case ConvolutionWork::input_gradient:
          x[of_x] += w[of_w] * y[of_y];
          break;
        case ConvolutionWork::weight_gradient:
          w[of_w] += y[of_y] * x[of_x];
          break;
      }
    });
  });
  std::size_t next = 0;
  for_each_point(Point(out.begin(), out.end()), [&](const Point& at) {
    Number number{};
    number.f = result[next++];
    memory.write(2, memory.step().dtype, at, number);
  });
}

}  // namespace caldera::reference
