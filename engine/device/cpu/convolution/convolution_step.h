// A step of a convolution.
#pragma once

#include <cstdint>

#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedConvolution {
 public:
  PreparedConvolution(const Step& step, const ConvolutionStep& convolution);
  void run(const RunContext& context) const;

 private:
  template <class T>
  void run_typed(const RunContext& context) const;

  ConvolutionStep kind_;
  Shape out_;
  DType type_;
  struct Place {
    std::int32_t buffer = -1;
    std::int64_t offset = 0;
  };
  Place places_[3];
};

}  // namespace caldera::cpu
