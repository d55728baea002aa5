// <caldera/distributions.h>: probability distributions with parameters that gradients reach.
//
//   caldera::Normal p(mean, std);
//   LazyTensor x = p.rsample(seed);          // differentiable with respect to mean and std
//   LazyTensor loss = -caldera::mean(p.log_prob(data));
//
// They are values made of lazy tensors: to make one computes nothing. Formulas are the textbook's (Cover and
// Thomas 2006, chapters 2 and 8), names those of torch.distributions. Thread-safe, as lazy tensors are.
#pragma once

#include "ops/distributions/discrete.h"
#include "ops/distributions/normal.h"
#include "ops/distributions/uniform.h"
