// Activation functions, with PyTorch's names, defaults and gradients at kinks. All take floating tensors
// (DTypeError otherwise) and give their shape and type; 16-bit types are computed in float32 and rounded
// once.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// max(x, 0); the slope at 0 is 0.
LazyTensor relu(const LazyTensor& x);
/// min(max(x, 0), 6).
LazyTensor relu6(const LazyTensor& x);
/// x above 0, negative_slope * x below.
LazyTensor leaky_relu(const LazyTensor& x, double negative_slope = 0.01);
/// Computes leaky_relu with slopes that are trained: `weight` broadcasts against x.
LazyTensor prelu(const LazyTensor& x, const LazyTensor& weight);
/// x above 0, alpha * (exp(x) - 1) below (Clevert, Unterthiner and Hochreiter 2015).
LazyTensor elu(const LazyTensor& x, double alpha = 1);
/// elu in x / alpha, scaled so that the slope is continuous (Barron 2017). ValueError for alpha = 0.
LazyTensor celu(const LazyTensor& x, double alpha = 1);
/// elu with the constants that keep mean and variance (Klambauer et al. 2017).
LazyTensor selu(const LazyTensor& x);

enum class GeluForm { exact, tanh };
/// x * Phi(x) with Phi the normal distribution function, or the approximation of it by tanh (Hendrycks and
/// Gimpel 2016).
LazyTensor gelu(const LazyTensor& x, GeluForm form = GeluForm::exact);
/// x * sigmoid(x), also called swish.
LazyTensor silu(const LazyTensor& x);
/// x * tanh(softplus(x)) (Misra 2019).
LazyTensor mish(const LazyTensor& x);
/// log(1 + exp(beta * x)) / beta, without overflow. ValueError for beta = 0.
LazyTensor softplus(const LazyTensor& x, double beta = 1);
/// x / (1 + |x|).
LazyTensor softsign(const LazyTensor& x);
/// log(sigmoid(x)), without overflow.
LazyTensor log_sigmoid(const LazyTensor& x);
/// x limited to [low, high]; the slope at the limits is 0 (that of clip is 1). ValueError for low > high.
LazyTensor hardtanh(const LazyTensor& x, double low = -1, double high = 1);
/// relu6(x + 3) / 6.
LazyTensor hardsigmoid(const LazyTensor& x);
/// x * hardsigmoid(x) (Howard et al. 2019).
LazyTensor hardswish(const LazyTensor& x);
/// x - tanh(x).
LazyTensor tanhshrink(const LazyTensor& x);
/// x moved towards 0 by lambda, 0 within. ValueError for a negative lambda.
LazyTensor softshrink(const LazyTensor& x, double lambda = 0.5);
/// x where |x| > lambda, else 0: x everywhere for a negative lambda, as in PyTorch.
LazyTensor hardshrink(const LazyTensor& x, double lambda = 0.5);
/// The first half of an axis times the sigmoid of the second (Dauphin et al. 2016). ShapeError for an odd
/// extent.
LazyTensor glu(const LazyTensor& x, AxisIndex axis = -1);

}  // namespace caldera
