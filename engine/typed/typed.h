// <caldera/typed.h>: tensors whose element types and shapes the compiler checks, and small ones on the stack.
//
//   using namespace caldera;
//   using caldera::extents::Batch;
//   TypedTensor<float, Batch, 784> x = typed<float, Batch, 784>(lazy);
//   TypedTensor<float, Batch, 10> y = matmul(x, w);        // w: TypedTensor<float, 784, 10>
#pragma once

#include "engine/typed/fixed_tensor.h"
#include "engine/typed/static_shape.h"
#include "engine/typed/typed_concepts.h"
#include "engine/typed/typed_modules.h"
#include "engine/typed/typed_ops.h"
#include "engine/typed/typed_tensor.h"
