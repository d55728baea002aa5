// The section of docs/guide/operations.md for readers who know an operation by another name.
#include <fmt/format.h>

#include "tests/ops/operations/document.h"

namespace caldera::testing {
namespace {

constexpr ForeignName kNames[] = {
    {"torch.cat", "concatenate", "concat, as in the Array API, is the same"},
    {"torch.tensor, numpy.asarray", "from_vector", "LazyTensor::from_vector(values, shape)"},
    {"torch.clamp", "clip", ""},
    {"torch.permute", "permute_dims", ""},
    {"torch.unsqueeze", "expand_dims", ""},
    {"torch.movedim", "moveaxis", ""},
    {"torch.mT, Tensor.t", "matrix_transpose", ""},
    {"torch.mm, torch.bmm, torch.mv, torch.dot", "matmul", ""},
    {"torch.index_select", "take", "an index outside gives NaN or 0"},
    {"torch.gather", "take_along_axis", ""},
    {"Tensor.scatter_", "put_along_axis", "by a mode: set, add, maximum, minimum"},
    {"torch.scatter_reduce", "scatter_reduce", "ScatterReduce::sum, prod, mean, amax, amin"},
    {"torch.take", "take", "of flatten(x)"},
    {"numpy.take(mode=...)", "take", "OutsideIndex::wrap, clip"},
    {"torch.unique, numpy.unique", "unique", "of a size that is given, or read"},
    {"torch.bincount, numpy.bincount", "bincount", "of a length that is given, or read"},
    {"Tensor.index_add_", "scatter_add", ""},
    {"x[2:5, ::2], x.narrow", "at", "at(x, slices).get(); one axis: slice"},
    {"x[i, j] = y, jax x.at[...].set(y)", "at", "at(x, slices).set(y), add, multiply, minimum, maximum"},
    {"x[mask] = value", "masked_fill", ""},
    {"x[mask]", "masked_select", "of a size that is given"},
    {"torch.nonzero", "nonzero", "of a size that is given"},
    {"torch.bitwise_not", "bitwise_invert", ""},
    {"torch.norm", "vector_norm", "matrices: matrix_norm"},
    {"torch.var, torch.std", "var", "the correction is 0 unless given, as in NumPy; PyTorch's default is 1"},
    {"torch.median", "median", "of two in the middle their mean, as in NumPy; PyTorch takes the lower"},
    {"torch.max(dim).indices", "argmax", ""},
    {"torch.max(dim), torch.min(dim)", "max_with_indices", "and min_with_indices: both results at once"},
    {"torch.cummax, torch.cummin", "cummax_with_indices", "of ties the first; the values alone: cummax"},
    {"torch.median(dim)", "median_with_indices", "the lower of two in the middle, and its position"},
    {"torch.repeat_interleave", "repeat", "by a number, numbers, or a tensor of counts"},
    {"torch.special.gammaln, torch.special.psi", "lgamma", "and digamma"},
    {"torch.special.expit", "sigmoid", ""},
    {"torch.linalg.eigvals, torch.linalg.eig", "eig", "real and imaginary parts apart, in order"},
    {"torch.linalg.vander", "vander", "powers decrease unless increasing=true"},
    {"numpy.gradient, torch.gradient", "gradient", ""},
    {"torch.amax", "amax", "ties share the gradient"},
    {"numpy.cumsum", "cumsum", "cumulative_sum of the Array API has an initial 0 on demand"},
    {"torch.nn.functional.conv1d, conv2d, conv3d", "conv", "by the number of spatial axes"},
    {"conv_transpose1d, 2d, 3d", "conv_transpose", ""},
    {"max_pool1d, 2d, 3d", "max_pool", ""},
    {"avg_pool1d, 2d, 3d", "avg_pool", ""},
    {"max_pool(return_indices=True)", "max_pool_with_indices", ""},
    {"max_unpool1d, 2d, 3d", "max_unpool", ""},
    {"lp_pool1d, 2d", "lp_pool", ""},
    {"adaptive_avg_pool1d, 2d, 3d", "adaptive_avg_pool", "and adaptive_max_pool; -1 for None"},
    {"torch.nn.functional.unfold, fold", "im2col", "and col2im; unfold is Tensor.unfold"},
    {"interpolate(mode=bicubic, bilinear)", "interpolate",
     "Interpolation::cubic, linear, by the number of axes"},
    {"dropout1d, 2d, 3d", "channel_dropout", ""},
    {"torch.nn.functional.pad", "pad",
     "reflect, replicate, circular: pad_reflect, pad_replicate, pad_circular"},
    {"torch.rand", "random_uniform", ""},
    {"torch.randn", "random_normal", ""},
    {"torch.randint", "random_randint", ""},
    {"torch.randperm", "random_permutation", ""},
    {"torch.multinomial, distributions.Categorical", "random_categorical", "of logits"},
    {"torch.bernoulli", "random_bernoulli", ""},
    {"torch.detach, jax.lax.stop_gradient", "stop_gradient", ""},
    {"torch.linalg.solve_triangular", "solve_triangular", ""},
    {"torch.sub, torch.mul, torch.div, torch.neg", "subtract",
     "and multiply, divide, negative; operators too"},
    {"torch.eq, ne, lt, le, gt, ge", "equal", "and not_equal, less, less_equal, greater, greater_equal"},
    {"torch.arccos, numpy.arccos and so on", "acos", ""},
    {"torch.fft.fft and its like", "fft",
     "and ifft, rfft, irfft, fft2, fftn, ...; of LazyTensor and ComplexTensor"},
    {"torch.complex, torch.polar", "from_polar", "ComplexTensor(real, imag)"},
    {"torch.special.erfinv", "erfinv", ""},
    {"torch.special.gammainc, gammaincc", "igamma", "and igammac"},
    {"torch.unique(dim=), unique_consecutive(dim=)", "unique_along", "and unique_consecutive_along"},
    {"torch.special.xlogy", "xlogy", ""},
};

}  // namespace

std::span<const ForeignName> foreign_names() { return kNames; }

std::string names_section() {
  std::string out =
      "\n## Names elsewhere\n\n"
      "Names are those of the Python Array API, else of PyTorch. Where people know others:\n\n"
      "| elsewhere | here | |\n|---|---|---|\n";
  for (const ForeignName& row : kNames)
    out += fmt::format("| `{}` | `{}` | {} |\n", row.elsewhere, row.operation, row.remark);
  return out;
}

}  // namespace caldera::testing
