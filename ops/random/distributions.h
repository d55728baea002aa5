// Random tensors besides the uniform and the normal ones (uniform_normal.h). All come from the same
// Philox4x32-10 stream: pure functions of seed and shape, alike on every device up to the rounding of its
// elementary functions; a new seed or bound does not compile again. Without a seed a call takes the next one
// of the global generator (generator.h). Part of ops/ops.h.
//
// Draws have 24 random bits in f32 and 32 in f64, so that what is rarer never happens; 16-bit results are f32
// ones rounded. Under vmap all examples share their draws: give each a seed of its own, or one axis more.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// True with probability p, a number or a tensor that broadcasts to `shape` (NaN: never). As another dtype 1
/// and 0. Throws ValueError for a number outside [0, 1]; of tensors such count as 0 or 1. No gradient.
LazyTensor random_bernoulli(const LazyTensor& p, const Shape& shape, std::uint64_t seed,
                            DType dtype = DType::boolean);
LazyTensor random_bernoulli(const LazyTensor& p, const Shape& shape, DType dtype = DType::boolean);

/// Integers low <= x < high. Each is as likely as another to 2^-16 of its probability; to 2^-24 where
/// high - low <= 2^24, and in i64 always to 2^-32: 48 random bits (i64: 96) are scaled to high - low and
/// rounded down (Lemire 2019, without rejection). Throws ValueError unless low < high and dtype holds both
/// low and high - 1.
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, std::uint64_t seed,
                          DType dtype = DType::i32);
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, std::uint64_t seed,
                          DType dtype, Device device);
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype = DType::i32);
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
                          Device device);

/// The normal distribution of mean 0 and deviation 1, given that lower <= x <= upper; far tails and infinite
/// bounds included. Throws ValueError unless lower < upper. By inversion of the distribution function
/// (Wichura 1988, AS 241).
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, std::uint64_t seed,
                                   DType dtype = DType::f32);
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, std::uint64_t seed,
                                   DType dtype, Device device);
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, DType dtype = DType::f32);
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, DType dtype,
                                   Device device);

/// Density exp(-x), x > 0 (in 16 bits the least round to 0). Divided by a rate it has that.
LazyTensor random_exponential(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_exponential(const Shape& shape, std::uint64_t seed, DType dtype, Device device);
LazyTensor random_exponential(const Shape& shape, DType dtype = DType::f32);
LazyTensor random_exponential(const Shape& shape, DType dtype, Device device);

/// -log of random_exponential: the standard Gumbel distribution.
LazyTensor random_gumbel(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_gumbel(const Shape& shape, std::uint64_t seed, DType dtype, Device device);
LazyTensor random_gumbel(const Shape& shape, DType dtype = DType::f32);
LazyTensor random_gumbel(const Shape& shape, DType dtype, Device device);

/// Which class, i32: class c of the last axis with the probability softmax(logits)[c]. With `count`, that
/// many independent draws along a new last axis. -infinity is never drawn unless all are. By Gumbel's
/// maximum.
LazyTensor random_categorical(const LazyTensor& logits, std::uint64_t seed,
                              std::optional<std::int64_t> count = {});
LazyTensor random_categorical(const LazyTensor& logits);

/// 0 to n - 1 in random order, i32: the order of n random 32-bit keys. Equal keys, rarer than n^2 / 2^33,
/// stay in place.
LazyTensor random_permutation(std::int64_t n, std::uint64_t seed);
LazyTensor random_permutation(std::int64_t n, std::uint64_t seed, Device device);
LazyTensor random_permutation(std::int64_t n);
LazyTensor random_permutation(std::int64_t n, Device device);

}  // namespace caldera
