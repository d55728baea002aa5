// The bounds and thresholds of the compiler's passes, in the order of the passes. Internal to
// engine/compile/.
//
// They trade kernels that are few against kernels that are small, and memory against waiting: a plan is right
// with any of them. What belongs to one algorithm alone (the budget of a search) stands there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera {

// ---- rewrite/

/// Parts of a concatenation beyond which element-wise operations stay behind it.
inline constexpr std::size_t kMaxConcatParts = 4;
/// Most pairs of operands that one contraction sums: x W + (x A) B has two, the gradient of an x that three
/// such products read has six.
inline constexpr int kMaxSegments = 8;

/// Bounds the elements of computed operands that segments keep, besides those of the longest: 16 MiB of f32.
/// Reading and writing the sum once more is little beside products of so much.
inline constexpr std::int64_t kMaxKeptBySegments = std::int64_t{1} << 22;
/// Most element-wise operations that an attention step applies to its scores, or to their gradient, and most
/// tensors that they may read.
inline constexpr std::size_t kMaxScoreOperations = 24;
inline constexpr std::size_t kMaxScoreReads = 8;

// ---- fuse/

/// Most instructions of a value that each of its consumers computes again instead of reading it.
inline constexpr int kMaxGenerated = 12;
/// Most instructions that a group may have, most distinct operands (numbers are free) and most results:
/// bounds the time a device's compiler takes on one kernel.
inline constexpr std::size_t kMaxGroupNodes = 64;
inline constexpr std::size_t kMaxGroupInputs = 16;
inline constexpr std::size_t kMaxGroupOutputs = 8;
/// Longest row whose reduction shares a kernel with what surrounds it: one workgroup or core walks it several
/// times. Where there are fewer than kEnoughRows rows to keep a device busy, kLongestOfFewRows. Beyond, a
/// reduction stays alone and is computed in parts.
inline constexpr std::int64_t kLongestRow = std::int64_t{1} << 18;
inline constexpr std::int64_t kEnoughRows = 16;
inline constexpr std::int64_t kLongestOfFewRows = std::int64_t{1} << 16;
/// Most groups that read the same memory and are tried side by side.
inline constexpr std::size_t kMaxSiblings = 16;
/// Most groups that are considered together.
inline constexpr std::size_t kMaxWindow = 2048;
/// Most searches of the whole program for joins across windows.
inline constexpr std::size_t kMaxFarSearches = 64;

// ---- emit/

/// Reductions over more points than kLongestReduction run in stages, the first over kReductionPart points
/// each: no workgroup loops for longer than drivers allow, and all of a device takes part.
inline constexpr std::int64_t kLongestReduction = std::int64_t{1} << 22;
inline constexpr std::int64_t kReductionPart = std::int64_t{1} << 16;
/// A matrix product is computed in parts of K, side by side, where K is at least kLongSum and the results are
/// at most kFewResults; how short the parts may be, and how many.
inline constexpr std::int64_t kLongSum = 8192;
inline constexpr std::int64_t kFewResults = 4096;
inline constexpr std::int64_t kShortestPartOfSum = 1024;
inline constexpr std::int64_t kMaxPartsOfSum = 32;

// ---- lower/

/// Attention over at least kManyKeys keys shares a head's keys among up to kMostJoinedHeads queries' heads;
/// where a head has at most kFewQueries queries, it is computed in parts of the keys: so many that each of
/// the device's units has kGroupsOfUnit of them, of at least kShortestKeyPart keys, in whole blocks of
/// kKeyBlock if the keys do not divide.
inline constexpr std::int64_t kManyKeys = 256;
inline constexpr std::int64_t kMostJoinedHeads = 64;
inline constexpr std::int64_t kFewQueries = 64;
inline constexpr std::int64_t kGroupsOfUnit = 2;
inline constexpr std::int64_t kShortestKeyPart = 64;
inline constexpr std::int64_t kKeyBlock = 32;

// ---- order/

/// Most steps that become one dispatch, and the bytes that may be alive while steps wait for others, or run
/// ahead of them, beyond the peak of the order that the plan came in.
inline constexpr std::size_t kMaxJoinedSteps = 1024;
inline constexpr std::int64_t kMaxBytesHeldBack = std::int64_t{1} << 20;
/// Bounds what an order with fewer barriers may take: this share of the arena more, or these bytes if they
/// are more.
inline constexpr double kArenaShareForFewerBarriers = 1.0 / 8;
inline constexpr std::int64_t kBytesForFewerBarriers = std::int64_t{1} << 20;
/// Points of regions that one workgroup computes at the end of a dispatch: 32 to 64 an invocation, whose
/// loads take a few microseconds, as long as a dispatch more and a barrier do.
inline constexpr std::int64_t kMostFinishingPoints = 8192;

}  // namespace caldera
