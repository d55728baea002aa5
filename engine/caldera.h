// The engine and its operations, <caldera/caldera.h>.
//
//   caldera::LazyTensor x = caldera::LazyTensor::from_vector<float>({1, 2, 3}, {3});
//   auto y = caldera::softmax(x * 2);             // a graph so far
//   std::vector<float> values = y.to_vector<float>();  // planned and computed here
#pragma once

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/checkpoint/checkpoint.h"
#include "engine/autodiff/checkpoint/keep_within.h"
#include "engine/autodiff/custom_vjp.h"
#include "engine/autodiff/jacobian/grad_mode.h"
#include "engine/autodiff/jacobian/jacobian.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/vmap.h"
#include "engine/base/byte_size.h"
#include "engine/base/error.h"
#include "engine/control/chain.h"
#include "engine/control/cond.h"
#include "engine/control/scan.h"
#include "engine/control/while_loop.h"
#include "engine/device/cpu_threads.h"
#include "engine/graph/default_device.h"
#include "engine/graph/graph.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/jit/compiled.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/axes.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "engine/testing/gradcheck.h"
#include "ops/nn/optimizer_updates.h"
#include "ops/ops.h"
#include "ops/quantized/quantized_products.h"
