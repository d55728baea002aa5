#include "engine/device/cpu/convolution/convolution_step.h"

#include <algorithm>
#include <type_traits>

#include "engine/device/cpu/convolution/direct_convolution.h"
#include "engine/device/cpu/convolution/flat_convolution.h"
#include "engine/device/cpu/convolution/winograd.h"

namespace caldera::cpu {

PreparedConvolution::PreparedConvolution(const Step& step, const ConvolutionStep& convolution)
    : kind_(convolution), out_(step.dims), type_(step.dtype) {
  for (std::size_t k = 0; k < 3; ++k) places_[k] = {step.operands[k].buffer, step.operands[k].offset};
}

template <class T>
void PreparedConvolution::run_typed(const RunContext& context) const {
  const auto at = [&](std::size_t k) {
    return reinterpret_cast<T*>(context.buffers[static_cast<std::size_t>(places_[k].buffer)]) +
           places_[k].offset;
  };
  const ConvolutionNode& what = kind_.what;
  T* const out = at(2);
  if (out_.numel() == 0) return;
  if (kind_.a.numel() == 0 || kind_.b.numel() == 0) {
    std::fill_n(out, out_.numel(), T(0));
    return;
  }
  const ConvolutionExtents extents(what, what.x(kind_.a, kind_.b, out_), what.w(kind_.a, kind_.b, out_),
                                   what.y(kind_.a, kind_.b, out_));
  if (is_for_flat(extents, what.work)) return convolve_flat<T>(extents, what.work, at(0), at(1), out);
  if constexpr (std::is_same_v<T, float>) {
    if (is_for_winograd(extents, what.work)) return convolve_winograd(extents, what.work, at(0), at(1), out);
  }
  convolve<T>(extents, what.work, at(0), at(1), out);
}

void PreparedConvolution::run(const RunContext& context) const {
  if (type_ == DType::f32)
    run_typed<float>(context);
  else
    run_typed<double>(context);
}

}  // namespace caldera::cpu
