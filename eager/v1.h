// The eager API, <caldera/v1.h>: every call has computed its result when it returns.
//
//   caldera::v1::Tensor x({1.0f, 2.0f, 3.0f}, {3});
//   auto y = (x * 2.0).softmax_stable();          // computed here
//   std::printf("%f\n", y.at({2}));
//
// Underneath is the lazy engine, and `lazy()` and `forward_lazy` are the bridges to it. MIGRATION.md tells
// what is gained by crossing, and where this API differs from the original whose names it keeps.
#pragma once

#include "eager/checkpoint.h"
#include "eager/device.h"
#include "eager/embedding.h"
#include "eager/errors.h"
#include "eager/generator.h"
#include "eager/kv_cache.h"
#include "eager/language_model.h"
#include "eager/lazy.h"
#include "eager/lora.h"
#include "eager/lora_adapter.h"
#include "eager/loss.h"
#include "eager/model_config.h"
#include "eager/optimizer.h"
#include "eager/qwen.h"
#include "eager/sampling.h"
#include "eager/scheduler.h"
#include "eager/tensor.h"
#include "eager/trainer.h"
#include "eager/var.h"

namespace caldera::v1 {

using caldera::Dims;
using caldera::DType;
using caldera::DTypeError;
using caldera::GradientError;
using caldera::Shape;
using caldera::ShapeError;
using caldera::ValueError;

}  // namespace caldera::v1
